"""Submissions as parcels: folders and archives that are packed oddly, wrongly or with malice."""

from __future__ import annotations

import io
import os
import socket
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WANT = "src/tally/report.py"
Pack = Callable[[Path, bytes], Path]  # a folder to work in and the right source → the submission


@dataclass(frozen=True)
class Parcel:
    """How it is packed, and what must come of it."""

    name: str
    pack: Pack
    status: str = "rejected"
    cause: str = ""


def folder(place: Path, files: Mapping[str, bytes], name: str = "work") -> Path:
    """A folder with these files."""
    root = place / name
    root.mkdir()
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root


def zipped(place: Path, members: list[tuple[str, bytes]], name: str = "work.zip") -> Path:
    """A .zip with these members, whatever they are called."""
    with zipfile.ZipFile(place / name, "w") as archive:
        for path, data in members:
            info = zipfile.ZipInfo("x")
            info.filename = path  # as it is: the class would tidy it up
            archive.writestr(info, data)
    return place / name


def tarred(place: Path, members: list[tuple[tarfile.TarInfo, bytes]], **how: object) -> Path:
    """A .tar.gz with these members."""
    with tarfile.open(place / "work.tar.gz", "w:gz", **how) as archive:  # type: ignore[call-overload]
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return place / "work.tar.gz"


def member(
    path: str, /, kind: bytes = tarfile.REGTYPE, link: str = "", **more: str
) -> tarfile.TarInfo:
    """A header; `more` are its extended attributes."""
    info = tarfile.TarInfo(path)
    info.type, info.linkname, info.pax_headers = kind, link, more
    return info


def with_node(make: Callable[[Path], object], where: str = "src/tally/more") -> Pack:
    """A folder with the right file and something else in it."""
    def pack(place: Path, right: bytes) -> Path:
        root = folder(place, {WANT: right})
        (root / where).parent.mkdir(parents=True, exist_ok=True)
        make(root / where)
        return root

    return pack


def instead(make: Callable[[Path], object]) -> Pack:
    """A folder with something else in the place of the file."""
    def pack(place: Path, right: bytes) -> Path:
        root = folder(place, {"src/tally/notes.txt": b"", "secret": right})
        make(root / WANT)
        return root

    return pack


def socket_at(path: Path) -> None:
    """A socket that nobody listens to."""
    here = Path.cwd()
    os.chdir(path.parent)  # its whole path may be too long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def sparse_at(path: Path) -> None:
    """A terabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def self_extracting(place: Path, right: bytes) -> Path:
    """A zip behind a program."""
    path = zipped(place, [(WANT, right)])
    path.write_bytes(b"#!/bin/sh\nexit 0\n" + path.read_bytes())
    return path


def two_tales(place: Path, right: bytes) -> Path:
    """A zip whose members are called one thing in its table and another where they stand."""
    path = zipped(place, [("src/tally/repott.py", right)])
    data = path.read_bytes()
    at = data.rindex(b"repott")
    path.write_bytes(data[:at] + b"report" + data[at + 6:])
    return path


def longer_than_said(place: Path, right: bytes) -> Path:
    """A zip whose table says that the file is one byte long."""
    path = zipped(place, [(WANT, right)])
    data = bytearray(path.read_bytes())
    table = data.index(b"PK\1\2")
    data[table + 20:table + 28] = (1).to_bytes(4, "little") * 2
    path.write_bytes(data)
    return path


def linked(place: Path, right: bytes) -> Path:
    """A link to a practice folder."""
    folder(place, {WANT: right}, "desk")
    (place / "work").symlink_to("desk")
    return place / "work"


def linking_zip(place: Path, right: bytes) -> Path:
    """A zip in which the file is a link."""
    info = zipfile.ZipInfo(WANT)
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(place / "work.zip", "w") as archive:
        archive.writestr(info, b"/etc/passwd")
        archive.writestr("secret.py", right)
    return place / "work.zip"


def zip_in_zip(place: Path, right: bytes) -> Path:
    """What was to be unpacked first."""
    inner = zipped(place, [(WANT, right)], "inner.zip")
    return zipped(place, [("work.zip", inner.read_bytes())])


def beside(**paths: bytes) -> Pack:
    """A folder with the right file and these others."""
    return lambda place, right: folder(place, {WANT: right, **paths})


def under(path: str) -> Pack:
    """A folder with the right file under another name."""
    return lambda place, right: folder(place, {path: right})


def in_zip(*names: str) -> Pack:
    """A .zip with the right file and empty ones of these names."""
    return lambda place, right: zipped(place, [(WANT, right), *((name, b"") for name in names)])


def in_tar(*members: tarfile.TarInfo, **how: object) -> Pack:
    """A tar whose members all hold the right source."""
    return lambda place, right: tarred(place, [(one, right) for one in members], **how)


EVIL = {name: b"1/0" for name in (
    "conftest.py", "sitecustomize.py", "src/sitecustomize.py", "src/pytest.py", "src/json.py",
    "src/tally/__init__.py", "src/tally/counter.py", "tests/test_02_1_top.py", "pytest.ini",
    "pyproject.toml", ".kit/probe_driver.py", ".kit/compiled.bin", ".git/hooks/post-checkout")}

PARCELS = [
    Parcel("a folder", under(WANT), "passed"),
    Parcel("a name that ends in a space", under(f"{WANT} "), cause=r"report\.py\\x20 meant"),
    Parcel("a name from right to left", under("src/tally/\u202eyp.troper"), cause="missing"),
    Parcel("a name of letters that look alike", under("src/tally/rep\u043ert.py"), cause="meant"),
    Parcel("a name that is half a character",
           beside(**{os.fsdecode(b"src/tally/\xed\xa0\x80"): b""}), "passed"),
    Parcel("a folder with a name in no language",
           lambda place, right: folder(place, {WANT: right},
                                       os.fsdecode(b"\xff\n\x1b[2J::error::=1+1")), "passed"),
    Parcel("a twin in capitals", beside(**{"src/Tally/report.py": b""}), cause="one name"),
    Parcel("a configuration for everything", beside(**EVIL), "passed"),
    Parcel("a folder in place of the file", instead(Path.mkdir), cause="missing"),
    Parcel("a pipe in place of the file", instead(os.mkfifo), cause="pipe"),
    Parcel("a socket in place of the file", instead(socket_at), cause="socket"),
    Parcel("a terabyte in place of the file", instead(sparse_at), cause="too large"),
    Parcel("a link to itself in place of the file",
           instead(lambda path: path.symlink_to(path.name)), cause="is a link"),
    Parcel("a second name in place of the file",
           instead(lambda path: path.hardlink_to(path.parents[2] / "secret")), cause="hard link"),
    Parcel("a link to another submission",
           instead(lambda path: path.symlink_to(f"../../../../000/work/{WANT}")),
           cause="is a link"),
    Parcel("a pipe beside the work", with_node(os.mkfifo), cause="pipe"),
    Parcel("folders that go on for ever",
           with_node(lambda path: path.joinpath(*"x" * 40).mkdir(parents=True), "more"),
           cause="folders deep"),
    Parcel("links in circles, far away", with_node(lambda path: path.symlink_to("."), "docs/x"),
           "passed"),
    Parcel("a link to a folder", linked, cause="work is a link"),
    Parcel("a zip with a way out", in_zip("src/../../evil.py"), cause="leads out"),
    Parcel("a zip with a way out of Windows", in_zip("src\\..\\..\\evil.py"), cause="leads out"),
    Parcel("a zip with a drive", in_zip("C:evil.py"), cause="absolute"),
    Parcel("a zip with a NUL in a name", in_zip(f"{WANT}\0.txt"), cause="NUL"),
    Parcel("a zip that tells two tales", two_tales, cause="damaged"),
    Parcel("a zip that is longer than it says", longer_than_said, cause="damaged"),
    Parcel("a zip behind a program", self_extracting, cause="no Python file"),
    Parcel("a zip in a zip", zip_in_zip, cause=r"is it in work\.zip"),
    Parcel("a zip with the file in two spellings", in_zip("src/./tally//report.py"),
           cause="2 times"),
    Parcel("a zip with a link", linking_zip, cause="is a link"),
    Parcel("a tar that writes through a link",
           in_tar(member("src/tally", tarfile.SYMTYPE, "../../.."), member(WANT)),
           cause="src/tally is a link"),
    Parcel("a tar with a second name for a secret",
           in_tar(member(WANT, tarfile.LNKTYPE, "/etc/passwd")), cause="is a link"),
    Parcel("a tar with a device", in_tar(member(WANT), member("null", tarfile.CHRTYPE)),
           cause="device"),
    Parcel("a tar with another name in an extended header",
           in_tar(member("harmless.txt", path=f"../{WANT}"), format=tarfile.PAX_FORMAT),
           cause="leads out"),
    Parcel("a tar with a name for all", in_tar(
        member(WANT), format=tarfile.PAX_FORMAT, pax_headers={"path": "../evil", "size": "9" * 9}),
        "passed"),
    Parcel("a tar of nothing but long names",
           lambda place, _: tarred(place, [(member(f"{n}/{'x' * 200}"), b"") for n in range(3000)]),
           cause="missing"),
]
