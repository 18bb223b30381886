"""Submissions as learners send them, as accidents leave them and as attackers make them."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import random
import shutil
import socket
import stat
import struct
import tarfile
import tempfile
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import archive, folder, intake, submission, tarball
from course.errors import RED, Unavailable
from course.intake import Rejected, Submission, take
from course.submission import MIB, checked_path, shown
from course.tarball import Tarball

WANT = "src/pi_course/resources.py"
ALLOWED = [WANT]
CODE = b"VALUE = 1\n"

Pack = Callable[[Path, Mapping[str, bytes]], Path]


def pack_folder(home: Path, files: Mapping[str, bytes]) -> Path:
    top = home / "jane"
    top.mkdir()
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return top


def pack_zip(home: Path, files: Mapping[str, bytes]) -> Path:
    target = home / "jane.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return target


def packer_tar(suffix: str) -> Pack:
    def pack(home: Path, files: Mapping[str, bytes]) -> Path:
        target = home / f"jane{suffix}"
        mode = {".tar": "w:", ".tgz": "w:gz"}.get(suffix, f"w:{suffix.rpartition('.')[2]}")
        with tarfile.open(target, mode) as packed:  # type: ignore[call-overload]
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                packed.addfile(member, io.BytesIO(data))
        return target

    return pack


PACKS: dict[str, Pack] = {
    "folder": pack_folder,
    "zip": pack_zip,
    **{suffix: packer_tar(suffix) for suffix in (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")},
}


@pytest.fixture(params=PACKS)
def pack(request: pytest.FixtureRequest) -> Pack:
    return PACKS[request.param]


def tar_of(home: Path, *members: tarfile.TarInfo, data: bytes = CODE) -> Path:
    """A tar archive with exactly these members; regular ones hold `data`."""
    target = home / "made.tar"
    with tarfile.open(target, "w:") as packed:
        for member in members:
            if member.isreg():
                member.size = len(data)
                packed.addfile(member, io.BytesIO(data))
            else:
                packed.addfile(member)
    return target


def member(
    name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, link: str = ""
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode, made.linkname = kind, mode, link
    return made


def cause(path: Path, allowed: list[str] = ALLOWED) -> str:
    """Why the submission is rejected: one printable line."""
    with pytest.raises(Rejected) as caught:
        take(path, allowed)
    assert caught.value.exit_code == RED and caught.value.kind == "rejected"
    assert caught.value.cause.isprintable() and len(caught.value.cause) < 500
    return caught.value.cause


# What learners send.


def test_only_the_wanted_files_are_taken(tmp_path: Path, pack: Pack) -> None:
    """Planted tests, configuration and modules stay outside."""
    planted = ["tests/test_x.py", "conftest.py", "src/pytest.py", "src/pi_course/x.py", "a.zip"]
    sent = {WANT: CODE, **dict.fromkeys(planted, b"")}
    taken = take(pack(tmp_path, sent), ALLOWED)
    assert taken == Submission("jane", {WANT: CODE}, ())


def test_several_files_are_taken_together(tmp_path: Path, pack: Pack) -> None:
    """Every file of the chapter's list comes, under its path in the chapter."""
    allowed = ["src/a/one.py", "src/a/two.py", "notes.py"]
    sent = {name: name.encode() for name in allowed}
    assert take(pack(tmp_path, sent), allowed).files == sent


@pytest.mark.parametrize("place", ["jane/", "work/jane-4711/", "./", "src/"])
def test_a_folder_above_is_no_matter(tmp_path: Path, pack: Pack, place: str) -> None:
    """An archive of the folder, of its parent, or of a folder with a name of the chapter's."""
    taken = take(pack(tmp_path, {f"{place}{WANT}": CODE, "README.md": b""}), ALLOWED)
    assert taken.files == {WANT: CODE}


@pytest.mark.parametrize("place", ["resources.py", "pi_course/resources.py", "lab/resources.py"])
def test_the_file_without_its_folders_is_found(tmp_path: Path, pack: Pack, place: str) -> None:
    """The file at another depth counts where no other has its name; a note says so."""
    taken = take(pack(tmp_path, {place: CODE, "other.py": b""}), ALLOWED)
    assert taken.files == {WANT: CODE}
    assert place in taken.notes[0] and WANT in taken.notes[0]


def test_the_least_deep_of_two_whole_matches_counts(tmp_path: Path, pack: Pack) -> None:
    """A backup copy of the folder inside the folder changes nothing."""
    taken = take(pack(tmp_path, {WANT: CODE, f"backup/{WANT}": b"old"}), ALLOWED)
    assert taken.files == {WANT: CODE}


@pytest.mark.parametrize(
    "places",
    [[f"a/{WANT}", f"b/{WANT}"], ["a/resources.py", "b/resources.py"]],
)
def test_two_equal_candidates_are_named(tmp_path: Path, pack: Pack, places: list[str]) -> None:
    """Which one counts is the student's to say, not ours to guess."""
    why = cause(pack(tmp_path, dict.fromkeys(places, CODE)))
    assert all(place in why for place in places)


@pytest.mark.parametrize(
    "name",
    ["ressources.py", "resource.py", "Resources.py", "resources.py.txt", "resources (1).py",
     "jane_resources_final.py"],
)  # fmt: skip
def test_a_renamed_file_is_suggested(tmp_path: Path, pack: Pack, name: str) -> None:
    """The close name is shown, with what to do about it."""
    with pytest.raises(Rejected) as caught:
        take(pack(tmp_path, {f"src/pi_course/{name}": CODE, "x.py": b""}), ALLOWED)
    assert "missing" in caught.value.cause and name in caught.value.cause
    assert "rename" in caught.value.next_command


@pytest.mark.parametrize(
    "data",
    [b"", b"\xef\xbb\xbfx = 1\r\ny = 2\r\n", "x = 'é'".encode("latin-1"), "x".encode("utf-16"),
     b"\x00\xff\n", b"a\rb\n\r"],
)  # fmt: skip
def test_bytes_are_taken_as_they_are(tmp_path: Path, pack: Pack, data: bytes) -> None:
    """Byte order marks, line ends and encodings are not intake's business."""
    assert take(pack(tmp_path, {WANT: data}), ALLOWED).files == {WANT: data}


@pytest.mark.parametrize(
    "name", ["resources.py", "jane_4711_resources.py", "resources(1).py", "resources.PY"]
)
def test_a_single_file_needs_only_about_its_name(tmp_path: Path, name: str) -> None:
    """Upload forms put the student's name before and a number behind."""
    (tmp_path / name).write_bytes(CODE)
    taken = take(tmp_path / name, ALLOWED)
    assert taken.files == {WANT: CODE}
    assert taken.name == name.rpartition(".")[0]
    assert (not taken.notes) == (name == WANT) or name in taken.notes[0]


def test_another_single_file_is_not_it(tmp_path: Path) -> None:
    """A file with a name of its own is not taken for the wanted one."""
    (tmp_path / "ressources.py").write_bytes(CODE)
    assert "ressources.py" in cause(tmp_path / "ressources.py")
    assert "missing" in cause(tmp_path / "ressources.py", ["a.py", "b.py"])


def test_a_practice_folder_as_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools' folders are passed over, with all the links, compiled files and copies in them."""
    copies = [".course/backup", ".git", "node_modules/x", ".venv", "env", ".tox", "__MACOSX"]
    sent = {f"{place}/{WANT}": b"copy" for place in copies}
    left = ["src/pi_course/__pycache__/resources.cpython-311.pyc", ".DS_Store", "pyproject.toml"]
    left += ["my-own-env/pyvenv.cfg", "my-own-env/lib/resources.py"]
    sent |= {WANT: CODE, **dict.fromkeys(left, b"")}
    desk = pack_folder(tmp_path, sent)
    (desk / ".venv" / "python").symlink_to("/usr/bin/python3")
    (desk / "my-own-env" / "python").symlink_to("/usr/bin/python3")
    with socket.socket(socket.AF_UNIX) as daemon:
        monkeypatch.chdir(desk / ".git")
        daemon.bind("fsmonitor.ipc")
    assert take(desk, ALLOWED) == Submission("jane", {WANT: CODE}, ())


def test_a_virtual_environment_in_an_archive_is_passed_over(tmp_path: Path, pack: Pack) -> None:
    """Whatever it is called, and though its mark comes after its files."""
    sent = {"myenv/lib/pi_course/resources.py": b"", "myenv/pyvenv.cfg": b"", "resources.py": CODE}
    assert take(pack(tmp_path, sent), ALLOWED).files == {WANT: CODE}


def test_an_environment_made_in_the_folder_itself_does_not_hide_the_work(
    tmp_path: Path, pack: Pack
) -> None:
    """`python -m venv .` puts the mark beside the work."""
    sent = {"jane/pyvenv.cfg": b"", f"jane/{WANT}": CODE}
    assert take(pack(tmp_path, sent), ALLOWED).files == {WANT: CODE}


def test_a_zip_from_windows(tmp_path: Path) -> None:
    """Backslashes between the parts, and no Unix modes."""
    target = tmp_path / "w.zip"
    with zipfile.ZipFile(target, "w") as packed:
        for name in ("jane\\", "jane\\src\\pi_course\\resources.py"):
            made = zipfile.ZipInfo(name)
            made.create_system = 0
            packed.writestr(made, CODE if name.endswith("y") else b"")
    assert take(target, ALLOWED).files == {WANT: CODE}


# What no submission may hold.


def test_a_wanted_file_that_is_a_link(tmp_path: Path) -> None:
    """The link is never followed, wherever it leads."""
    (tmp_path / "secret.py").write_bytes(b"SECRET")
    desk = pack_folder(tmp_path, {"src/pi_course/other.py": b""})
    (desk / WANT).symlink_to(tmp_path / "secret.py")
    assert "link" in cause(desk)


def test_a_folder_on_the_way_that_is_a_link(tmp_path: Path) -> None:
    """src -> the reference solution."""
    (tmp_path / "reference" / "pi_course").mkdir(parents=True)
    (tmp_path / "reference" / "pi_course" / "resources.py").write_bytes(b"SECRET")
    desk = pack_folder(tmp_path, {"README.md": b""})
    (desk / "src").symlink_to(tmp_path / "reference")
    assert "src is a link" in cause(desk)


def test_a_link_beside_the_wanted_file(tmp_path: Path) -> None:
    """Package data that points elsewhere."""
    desk = pack_folder(tmp_path, {WANT: CODE})
    (desk / "src" / "pi_course" / "data.txt").symlink_to("/etc/passwd")
    assert "data.txt" in cause(desk)


def test_a_link_somewhere_else_is_harmless(tmp_path: Path) -> None:
    """It is neither followed nor taken."""
    desk = pack_folder(tmp_path, {WANT: CODE})
    (desk / "everything").symlink_to("/")
    assert take(desk, ALLOWED).files == {WANT: CODE}


def test_the_submission_itself_is_a_link(tmp_path: Path) -> None:
    """A student who can write to the inbox cannot hand in somebody else's folder."""
    desk = pack_folder(tmp_path, {WANT: CODE})
    (tmp_path / "eve").symlink_to(desk)
    assert "neither a folder nor an ordinary file" in cause(tmp_path / "eve")


def test_a_second_name_for_a_secret(tmp_path: Path) -> None:
    """A hard link looks like a file and is one, but not the student's."""
    (tmp_path / "secret").write_bytes(b"SECRET")
    desk = pack_folder(tmp_path, {"src/pi_course/x.py": b""})
    os.link(tmp_path / "secret", desk / WANT)
    assert "hard link" in cause(desk)


@pytest.mark.parametrize("where", ["src/pi_course", "docs"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "setuid", "setgid", "huge", "deep"])
def test_a_special_file_anywhere(tmp_path: Path, kind: str, where: str) -> None:
    """Devices, pipes, sockets, privileged and endless files: at once, and without opening them."""
    desk = pack_folder(tmp_path, {WANT: CODE, "docs/a.md": b""})
    target = desk / where / "thing"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(target))
    elif kind == "deep":
        for _ in range(200):
            target = target / "d"
        target.mkdir(parents=True)
    else:
        target.write_bytes(b"")
        if kind == "huge":
            os.truncate(target, 1 << 40)
        else:
            target.chmod(0o4755 if kind == "setuid" else 0o2755)
    started = time.monotonic()
    assert "thing" in cause(desk)
    assert time.monotonic() - started < 1


def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    """Opening it for reading would wait for ever."""
    desk = pack_folder(tmp_path, {"src/pi_course/x.py": b""})
    os.mkfifo(desk / WANT)
    assert "pipe" in cause(desk)
    os.mkfifo(tmp_path / "resources.py")
    assert "ordinary" in cause(tmp_path / "resources.py")


@pytest.mark.parametrize(
    "twin",
    ["SRC/pi_course/x.py", "src/PI_course/x.py", f"{WANT[:-3]}.PY", "src/pi_course/ﬁ.py"],
)
def test_twins_on_another_file_system(tmp_path: Path, pack: Pack, twin: str) -> None:
    """Names that differ only in case or in how a letter is composed."""
    sent = {WANT: CODE, twin: b"", "src/pi_course/fi.py": b""}
    assert "one name" in cause(pack(tmp_path, sent))


def test_normalisation_twins(tmp_path: Path, pack: Pack) -> None:
    """é as one character and as two."""
    forms = [unicodedata.normalize(form, "src/pi_course/é.py") for form in ("NFC", "NFD")]
    assert "one name" in cause(pack(tmp_path, {WANT: CODE, **dict.fromkeys(forms, b"")}))


def test_twins_elsewhere_do_no_harm(tmp_path: Path, pack: Pack) -> None:
    """README.md beside readme.md is not grading's business."""
    sent = {WANT: CODE, "README.md": b"", "readme.md": b""}
    assert take(pack(tmp_path, sent), ALLOWED).files == {WANT: CODE}


@pytest.mark.parametrize(
    "name",
    ["speed.cpython-311-x86_64-linux-gnu.so", "resources.pyc", "x.pth", "lib.whl", "x.PYD",
     "data.zip", "data.tar.gz", "x.7z"],
)  # fmt: skip
def test_compiled_code_and_archives_beside_the_source(
    tmp_path: Path, pack: Pack, name: str
) -> None:
    """Nobody can read them in an appeal."""
    assert name in cause(pack(tmp_path, {WANT: CODE, f"src/pi_course/{name}": b""}))
    taken = pack_zip(tmp_path, {WANT: CODE, f"docs/{name}": b""})
    assert take(taken, ALLOWED).files == {WANT: CODE}


def test_a_wanted_file_that_is_too_long(tmp_path: Path, pack: Pack) -> None:
    """Two megabytes are no chapter file."""
    assert "longer than 1 MiB" in cause(pack(tmp_path, {WANT: b"#" * (2 * MIB)}))


def test_too_many_files(tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted while they are listed, not afterwards."""
    monkeypatch.setattr(intake, "MOST_ENTRIES", 100)
    sent = {WANT: CODE, **{f"data/{number}": b"" for number in range(101)}}
    assert "more than 100 files" in cause(pack(tmp_path, sent))


def test_too_many_files_where_they_do_not_count(
    tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is passed over may be large, but an archive is not listed for ever."""
    for module in (folder, archive):
        monkeypatch.setattr(module, "MOST_MEMBERS", 100)
    sent = {WANT: CODE, **{f"node_modules/{number}": b"" for number in range(101)}}
    target = pack(tmp_path, sent)
    if target.is_dir():
        assert take(target, ALLOWED).files == {WANT: CODE}
    else:
        assert "more than 100 members" in cause(target)


def test_an_empty_submission(tmp_path: Path, pack: Pack) -> None:
    """Nothing at all, and nothing but a readme."""
    assert "no files" in cause(pack(tmp_path, {}))


def test_a_submission_without_the_file(tmp_path: Path, pack: Pack) -> None:
    """Another chapter's work."""
    assert cause(pack(tmp_path, {"README.md": b"", "main.c": b""})) == f"{WANT} is missing"


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    """A cause, not a traceback."""
    assert "No such file" in cause(tmp_path / "nobody.zip")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    """A cause, not a traceback."""
    desk = pack_folder(tmp_path, {WANT: CODE})
    (desk / "src").chmod(0)
    assert "cannot be read" in cause(desk)
    (desk / "src").chmod(0o755)


def test_our_own_lack_of_descriptors_is_not_the_students_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ungradable, never rejected."""

    def out_of_descriptors(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(intake, "folder_entries", out_of_descriptors)
    with pytest.raises(Unavailable):
        take(pack_folder(tmp_path, {WANT: CODE}), ALLOWED)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "pipe", "second name"])
def test_a_file_swapped_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What is opened is what was looked at; a race ends in an error, not in a secret."""
    (tmp_path / "secret").write_bytes(b"SECRET")
    desk = pack_folder(tmp_path, {WANT: CODE})
    real = os.stat

    def swapping(name: str, *args: object, **kwargs: object) -> os.stat_result:
        found = real(name, *args, **kwargs)  # type: ignore[arg-type]
        if name == "resources.py":
            (desk / WANT).unlink()
            if kind == "link":
                (desk / WANT).symlink_to(tmp_path / "secret")
            elif kind == "pipe":
                os.mkfifo(desk / WANT)
            else:
                os.link(tmp_path / "secret", desk / WANT)
        return found

    monkeypatch.setattr(os, "stat", swapping)
    with pytest.raises(Rejected):
        take(desk, ALLOWED)


@pytest.mark.parametrize(
    "name", ["a\x1b[2Jb", "a\nb", "::error::x", "a\u202eb", "\udcff\udcfe", "<b>"]
)
def test_a_hostile_name_is_shown_safely_and_costs_nothing(tmp_path: Path, name: str) -> None:
    """Names are escaped where they are shown, and ignored where they do not matter."""
    desk = pack_folder(tmp_path, {WANT: CODE, f"docs/{name}": b""})
    assert take(desk, ALLOWED).files == {WANT: CODE}
    (desk / "src" / f"{name}.so").write_bytes(b"")
    assert "compiled" in cause(desk)


# What archives can say.


@pytest.mark.parametrize(
    "name",
    [f"../{WANT}", f"a/../../{WANT}", f"/{WANT}", f"C:\\{WANT}", f"..\\{WANT}", f"\\\\host\\{WANT}",
     "d/" * 40 + "x.py", "x" * 300 + ".py", "/etc/cron.d/x"],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["zip", ".tar", ".tar.gz"])
def test_a_member_that_leads_out(tmp_path: Path, name: str, suffix: str) -> None:
    """Absolute, upward, deep and long names are refused even where nothing is extracted."""
    assert cause(PACKS[suffix](tmp_path, {WANT: CODE, name: CODE}))


@pytest.mark.parametrize(
    "members",
    [
        [member(WANT, tarfile.SYMTYPE, link="/etc/passwd")],
        [member(WANT, tarfile.LNKTYPE, link="x.py"), member("x.py")],
        [member("src", tarfile.SYMTYPE, link="/tmp"), member(WANT)],
        [member("jane", tarfile.SYMTYPE, link="/tmp"), member(f"jane/{WANT}")],
        [member("x", tarfile.CHRTYPE), member(WANT)],
        [member("x", tarfile.BLKTYPE), member(WANT)],
        [member("x", tarfile.FIFOTYPE), member(WANT)],
        [member("x", b"Z"), member(WANT)],
        [member("x", mode=0o4755), member(WANT)],
        [member("x", mode=0o2755), member(WANT)],
        [member(WANT), member(WANT)],
        [member("src/pi_course", mode=0o644), member(WANT)],
        [member("docs/x"), member("docs/x"), member(WANT)],
        [member("src/pi_course/link", tarfile.SYMTYPE, link="x"), member(WANT)],
    ],
)
def test_a_tar_member_of_the_wrong_kind(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """Links, devices, pipes, unknown kinds, privileges, duplicates, files that are also folders."""
    assert cause(tar_of(tmp_path, *members))


@pytest.mark.parametrize(
    ("name", "mode"),
    [(WANT, stat.S_IFLNK | 0o777), ("x", stat.S_IFIFO), ("x", stat.S_IFCHR), ("x", 0o104755)],
)
def test_a_zip_member_of_the_wrong_kind(tmp_path: Path, name: str, mode: int) -> None:
    """The same in the Unix modes of a zip."""
    target = tmp_path / "m.zip"
    with zipfile.ZipFile(target, "w") as packed:
        made = zipfile.ZipInfo(name)
        made.external_attr = mode << 16
        packed.writestr(made, b"/etc/passwd")
        packed.writestr("src/other/resources.py", CODE)
    assert cause(target)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_the_file_twice(tmp_path: Path) -> None:
    """Which one a tool sees depends on the tool."""
    target = tmp_path / "twice.zip"
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr(WANT, CODE)
        packed.writestr(WANT, b"other")
    assert "2 times" in cause(target)


def test_a_zip_with_a_password(tmp_path: Path) -> None:
    """The student learns why it cannot be read."""
    target = pack_zip(tmp_path, {WANT: CODE})
    data = bytearray(target.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(magic) + offset] |= 1
    target.write_bytes(data)
    assert "password" in cause(target)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_packed_in_an_unusual_way(tmp_path: Path, method: int) -> None:
    """Those two unpack without a bound on memory."""
    target = tmp_path / "odd.zip"
    with zipfile.ZipFile(target, "w", method) as packed:
        packed.writestr(WANT, CODE)
    assert "unusual" in cause(target)


@pytest.mark.parametrize("magic", [b"Rar!\x1a\x07\x01\0", b"7z\xbc\xaf\x27", b"\x28\xb5\x2f\xfd"])
def test_another_kind_of_archive_is_named(tmp_path: Path, magic: bytes) -> None:
    """What it is, and what to send."""
    (tmp_path / "work.zip").write_bytes(magic + bytes(600))
    assert ".zip" in cause(tmp_path / "work.zip")


def test_a_zip_bomb(tmp_path: Path) -> None:
    """A wanted file of a gigabyte: one megabyte of it is unpacked."""
    target = tmp_path / "bomb.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(WANT, bytes(100 * MIB))
    assert "longer than" in cause(target)
    data = bytearray(target.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.rfind(magic) + offset, len(CODE))
    target.write_bytes(data)
    assert cause(target)


def test_many_large_members(
    tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of what they say they hold is what counts."""
    monkeypatch.setattr(intake, "MOST_BYTES", 2 * MIB)
    sent = {WANT: CODE, **{f"x{number}": bytes(MIB) for number in range(3)}}
    assert "more than 2 MiB" in cause(pack(tmp_path, sent))


@pytest.mark.parametrize("pack_stream", [gzip.compress, bz2.compress, lzma.compress])
def test_a_tar_bomb(
    tmp_path: Path, pack_stream: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacking stops at the bound, whatever the headers say."""
    monkeypatch.setattr(tarball, "MOST_BYTES", 8 * MIB)
    header = member("node_modules/x")
    header.size = 100 * MIB
    bomb = pack_stream(header.tobuf() + bytes(20 * MIB))
    (tmp_path / "bomb.tar.gz").write_bytes(bomb)
    assert "unpacks to more than" in cause(tmp_path / "bomb.tar.gz")


def test_an_xz_that_wants_gigabytes_of_memory(tmp_path: Path) -> None:
    """A dictionary of 1.5 GiB is announced in the header."""
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1536 * MIB}]
    packer = lzma.LZMACompressor(format=lzma.FORMAT_XZ, filters=[filters[0] | {"dict_size": 4096}])
    data = bytearray(packer.compress(tar_of(tmp_path, member(WANT)).read_bytes()) + packer.flush())
    at = data.index(bytes([0x21, 0x01]), 12)
    data[at + 2] = 40


    size = (data[12] + 1) * 4
    struct.pack_into("<I", data, 12 + size - 4, zlib.crc32(data[12 : 12 + size - 4]))
    (tmp_path / "big.tar.xz").write_bytes(data)
    assert cause(tmp_path / "big.tar.xz")


def test_sparse_members(tmp_path: Path) -> None:
    """GNU's own kind, and the one in extended headers."""
    assert "sparse" in cause(tar_of(tmp_path, member("x", tarfile.GNUTYPE_SPARSE), member(WANT)))
    made = member(WANT)
    made.pax_headers = {"GNU.sparse.realsize": str(1 << 40)}
    target = tmp_path / "pax.tar"
    with tarfile.open(target, "w:", format=tarfile.PAX_FORMAT) as packed:
        packed.addfile(made)
    assert "sparse" in cause(target)


@pytest.mark.parametrize("kind", [b"L", b"x", b"g", b"K"])
def test_an_endless_header(tmp_path: Path, kind: bytes) -> None:
    """A long name of 8 GiB is not read."""
    made = member("x", kind)
    made.size = 8**11 - 1
    (tmp_path / "h.tar").write_bytes(made.tobuf() + bytes(4096))
    assert cause(tmp_path / "h.tar")


def test_a_million_headers_cost_seconds_at_most(tmp_path: Path) -> None:
    """Headers without end: the bound on members holds, and no header is looked at twice."""
    one = member("docs/x").tobuf()
    (tmp_path / "many.tar.gz").write_bytes(gzip.compress(one * 500_000, 1))
    started = time.monotonic()
    assert cause(tmp_path / "many.tar.gz")
    assert time.monotonic() - started < 20


def test_a_header_that_does_not_add_up(tmp_path: Path) -> None:
    """A flipped bit in a header is noticed."""
    target = tar_of(tmp_path, member(WANT))
    data = bytearray(target.read_bytes())
    data[0] ^= 1
    target.write_bytes(data)
    assert "damaged" in cause(target)


def test_a_size_in_binary(tmp_path: Path) -> None:
    """The other way to write a size, which tools use above 8 GiB."""
    header = bytearray(tar_of(tmp_path, member(WANT)).read_bytes()[:512])
    header[124:136] = b"\x80" + len(CODE).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "binary.tar").write_bytes(bytes(header) + CODE.ljust(512, b"\0") + bytes(1024))
    assert take(tmp_path / "binary.tar", ALLOWED).files == {WANT: CODE}


@pytest.mark.parametrize("cut", [0, 1, 100, 511, 512, 700, 1024])
@pytest.mark.parametrize("suffix", ["zip", ".tar", ".tgz", ".tar.xz", ".tar.bz2"])
def test_an_archive_that_was_not_sent_whole(tmp_path: Path, suffix: str, cut: int) -> None:
    """A broken upload is rejected, not half taken."""
    whole = PACKS[suffix](tmp_path, {WANT: random.Random(1).randbytes(3000)})
    whole.write_bytes(whole.read_bytes()[:cut])
    assert cause(whole)


# Whatever comes.

NAMES = st.one_of(
    st.sampled_from([WANT, "src", "src/pi_course", "resources.py", "..", ".", "", "/", "\\"]),
    st.text(max_size=40),
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def verdict(data: bytes, name: str) -> Submission | None:
    """The submission, or None where it is rejected; anything else fails the test."""
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, name)
        path.write_bytes(data)
        try:
            return take(path, ALLOWED)
        except Rejected as rejected:
            assert rejected.cause.isprintable()
            return None


@settings(deadline=None, max_examples=150)
@given(
    st.binary(max_size=2000),
    st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0"]),
)
def test_any_bytes_are_taken_or_rejected(data: bytes, start: bytes) -> None:
    """No archive of arbitrary bytes brings a traceback."""
    verdict(start + data, "jane.zip")


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["zip", ".tar", ".tgz", ".tar.xz", ".tar.bz2"]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_damaged_archives_are_taken_or_rejected(suffix: str, bites: list[tuple[int, int]]) -> None:
    """Flipped bytes anywhere: the contents as sent, other contents, or a cause."""
    with tempfile.TemporaryDirectory() as home:
        data = bytearray(PACKS[suffix](Path(home), {WANT: CODE, "docs/a": b"x"}).read_bytes())
    for at, value in bites:
        data[at % len(data)] = value
    verdict(bytes(data), "jane.zip")


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(
            PATHS,
            st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE]),
            st.binary(max_size=20),
        ),
        max_size=6,
    )
)
def test_any_members_are_taken_or_rejected(rows: list[tuple[str, bytes, bytes]]) -> None:
    """Whatever is taken is the content of a regular member with the wanted name."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as packed:
        for name, kind, data in rows:
            made = member(name, kind, link="/etc/passwd")
            made.size = len(data) if made.isreg() else 0
            try:
                packed.addfile(made, io.BytesIO(data) if made.isreg() else None)
            except ValueError:
                continue
    taken = verdict(target.getvalue(), "jane.tar")
    if taken:
        regular = [
            data
            for name, kind, data in rows
            if kind == tarfile.REGTYPE and checked_path(name).endswith("resources.py")
        ]
        assert list(taken.files) == [WANT] and taken.files[WANT] in regular


PLAIN = st.text("abcXY é", min_size=1, max_size=8).map(lambda text: f"{text.strip()}.md")


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(
        st.lists(PLAIN, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=5
    ),
    st.sampled_from([WANT, f"top/{WANT}", "resources.py", "src/pi_course/ressources.py"]),
)
def test_every_form_of_a_submission_gets_the_same_answer(
    files: dict[str, bytes], place: str
) -> None:
    """Folder, zip and tar are three spellings of one thing."""
    files = {name.replace("//", "/"): data for name, data in files.items()} | {place: CODE}
    parents = {str(parent) for name in files for parent in Path(name).parents}
    files = {name: data for name, data in files.items() if name not in parents}
    answers = []
    for kind in ("folder", "zip", ".tar.gz"):
        with tempfile.TemporaryDirectory() as home:
            try:
                answers.append(repr(take(PACKS[kind](Path(home), files), ALLOWED)))
            except Rejected as rejected:
                answers.append(rejected.cause)
    assert len(set(answers)) == 1, answers


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1,
                    max_size=150),
            st.binary(max_size=1500),
        ),
        max_size=5,
    ),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
)  # fmt: skip
def test_our_tar_reader_agrees_with_the_standard_library(
    rows: list[tuple[str, bytes]], form: int
) -> None:
    """Names of any length in either dialect, sizes, modes and contents: tarfile is the oracle."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as packed:
        for name, data in rows:
            made = member(name)
            made.size = len(data)
            packed.addfile(made, io.BytesIO(data))
    target.seek(0)
    with tarfile.open(fileobj=target) as reference:
        expected = [(m.name, m.size, m.mode, reference.extractfile(m).read())  # type: ignore[union-attr]
                    for m in reference]  # fmt: skip
    target.seek(0)
    ours = Tarball(target)
    found = [(m.name, m.size, m.mode, ours.content(m, 2000)) for m in ours]
    assert found == expected


@given(st.text(max_size=300))
def test_shown_text_is_one_safe_line(text: str) -> None:
    """Nothing that a terminal, a log or a page would obey survives."""
    line = shown(text)
    assert line.isprintable() and line and len(line) < 1500


@given(PATHS)
def test_a_checked_path_stays_inside(path: str) -> None:
    """Relative, without . and .., whatever was said."""
    try:
        parts = checked_path(path).split("/")
    except Rejected:
        return
    assert ".." not in parts and "." not in parts and not checked_path(path).startswith("/")


def test_intake_starts_nothing_and_writes_nothing(tmp_path: Path) -> None:
    """The modules of intake know no way to run or to write anything."""
    for module in (intake, submission, folder, archive):
        source = Path(str(module.__file__)).read_text()
        assert "subprocess" not in source and "extract" not in source.replace("extracted", "")
    desk = pack_folder(tmp_path, {WANT: CODE})
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    take(desk, ALLOWED)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    shutil.rmtree(desk)
