"""scan_skills: how much it reads, what it follows, how long it takes, and that it never waits."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import skills

WriteSkill = Callable[..., Path]

posix_only = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs and sockets are POSIX")


def test_scan_reads_no_more_than_the_headers_buffer(
    write_skill: WriteSkill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty skills with 8 KB bodies of invalid UTF-8: all listed, HEADER_BUFFER bytes of each."""
    paths = [write_skill(f"s{number}", b"\xff" * 8192) for number in range(20)]
    bytes_read = _count_bytes(monkeypatch)

    registry = skills.scan_skills(tmp_path / "skills")

    assert len(registry) == 20
    assert set(bytes_read) == {str(path.resolve()) for path in paths}
    assert max(bytes_read.values()) <= skills.HEADER_BUFFER < 4096 + 16


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's io accounting")
def test_scan_reads_no_more_by_the_systems_own_account(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """The kernel counts no more bytes read than twenty header buffers and its own account."""
    for number in range(20):
        write_skill(f"s{number}", b"\xff" * 8192)
    before = _read_by_the_process()
    skills.scan_skills(tmp_path / "skills")
    assert _read_by_the_process() - before <= 20 * skills.HEADER_BUFFER + 4096


def test_no_body_is_anywhere_in_the_registry(write_skill: WriteSkill, tmp_path: Path) -> None:
    """A marker in a body is not in the registry's text, nor is the body's length."""
    write_skill("output-check", b"MARKER-IN-BODY")
    registry = skills.scan_skills(tmp_path / "skills")
    assert "MARKER-IN-BODY" not in repr(registry)
    assert {key for entry in registry.values() for key in entry} == {"description", "path", "root"}


@pytest.mark.parametrize("seed", range(5))
def test_order_on_disk_does_not_matter(
    write_skill: WriteSkill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """However the system lists the folder, the registry is in the order of the names."""
    names = ["a", "a-b", "a1", "b", "sql-style", "z9"]
    for name in names:
        write_skill(name)
    plain = os.scandir

    class Shuffled:
        def __init__(self, path: str | Path) -> None:
            with plain(path) as found:
                self.entries = list(found)
            random.Random(seed).shuffle(self.entries)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Shuffled)
    assert list(skills.scan_skills(tmp_path / "skills")) == names, f"seed {seed}"


def test_root_may_be_a_link_or_relative(
    write_skill: WriteSkill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host chooses the root; its real path is what the registry holds."""
    write_skill()
    (tmp_path / "link").symlink_to(tmp_path / "skills", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    expected = skills.scan_skills(tmp_path / "skills")
    assert skills.scan_skills(Path("link")) == skills.scan_skills(Path("skills")) == expected


@pytest.mark.parametrize("limit", [0, 1, 20, 21])
def test_limit_from_both_sides(write_skill: WriteSkill, tmp_path: Path, limit: int) -> None:
    """`limit` skills are a catalogue and one more is an error that names the number."""
    (tmp_path / "skills").mkdir()
    for number in range(limit):
        write_skill(f"s{number}")
    assert len(skills.scan_skills(tmp_path / "skills", limit=limit)) == limit
    write_skill("one-more")
    with pytest.raises(ValueError, match=f"最多{limit}项"):
        skills.scan_skills(tmp_path / "skills", limit=limit)


def test_missing_root_is_an_error(tmp_path: Path) -> None:
    """No folder is not an empty catalogue."""
    with pytest.raises(OSError):
        skills.scan_skills(tmp_path / "nowhere")


def test_what_is_no_skill_is_passed_over(write_skill: WriteSkill, tmp_path: Path) -> None:
    """Files, links to files, folders without a SKILL.md and other spellings of it are no skills."""
    write_skill()
    root = tmp_path / "skills"
    (root / "README.md").write_text("text")
    (root / "linked.md").symlink_to("README.md")
    (root / ".git").mkdir()
    (root / "drafts" / "deeper").mkdir(parents=True)
    (root / "drafts" / "deeper" / "SKILL.md").write_bytes(b"\xff")
    (root / "lower").mkdir()
    (root / "lower" / "skill.markdown").write_bytes(b"\xff")
    assert list(skills.scan_skills(root)) == ["output-check"]


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _circle(path: Path) -> None:
    path.symlink_to(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _fifo_behind_a_link(path: Path) -> None:
    os.mkfifo(path.with_name("fifo"))
    path.symlink_to("fifo")


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may have only some hundred characters
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


@posix_only
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "make", [_dangling, _circle, _folder, _fifo, _fifo_behind_a_link, _socket]
)
def test_strange_files_are_errors_at_scan_and_load(
    write_skill: WriteSkill, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """What is no regular file raises ValueError or OSError, at once, whichever road leads to it."""
    path = write_skill()
    registry = skills.scan_skills(tmp_path / "skills")
    path.unlink()
    make(path)
    with pytest.raises((ValueError, OSError)) as caught:
        skills.scan_skills(tmp_path / "skills")
    assert any("output-check" in note for note in caught.value.__notes__)
    with pytest.raises((ValueError, OSError)):
        skills.load_skill("output-check", registry)


@pytest.mark.parametrize("kind", ["outside", "sibling", "dangling", "circle", "empty"])
def test_linked_folders_are_refused(write_skill: WriteSkill, tmp_path: Path, kind: str) -> None:
    """A link where a skill's folder would be is an error, wherever it leads."""
    write_skill("sql-style")
    root = tmp_path / "skills"
    (tmp_path / "outside" / "output-check").mkdir(parents=True)
    target = {
        "outside": tmp_path / "outside" / "output-check",
        "sibling": root / "sql-style",
        "dangling": tmp_path / "nowhere",
        "circle": root / "output-check",
        "empty": tmp_path / "outside",
    }[kind]
    (root / "output-check").symlink_to(target, target_is_directory=True)
    with pytest.raises((ValueError, OSError)):
        skills.scan_skills(root)


def test_error_says_which_skill(write_skill: WriteSkill, tmp_path: Path) -> None:
    """The text of the error is fixed; a note on it names the folder."""
    write_skill("a-good-one")
    write_skill("output-check").write_bytes(b"no header")
    with pytest.raises(ValueError) as caught:
        skills.scan_skills(tmp_path / "skills")
    assert str(caught.value) == "技能缺少frontmatter。"
    assert caught.value.__notes__ == ["skill folder: output-check"]


def test_encoding_of_the_machine_does_not_matter(
    write_skill: WriteSkill, tmp_path: Path, src: Path
) -> None:
    """Under LC_ALL=C without UTF-8 mode the same Chinese text is read."""
    write_skill(description="核对输出。", body="正文".encode())
    program = (
        "import sys; from pathlib import Path; from harness.skills import *\n"
        "registry = scan_skills(Path(sys.argv[1]))\n"
        "print(ascii(build_system(registry, '') + load_skill('output-check', registry)))"
    )
    environment = {"PYTHONPATH": str(src), "PYTHONUTF8": "0", "LC_ALL": "C",
                   "PYTHONCOERCECLOCALE": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "skills")],
                          env=environment, capture_output=True, text=True, check=True)
    assert ascii("核对输出。").strip("'") in done.stdout
    assert ascii("正文").strip("'") in done.stdout


def test_speed_against_only_opening_and_reading(write_skill: WriteSkill, tmp_path: Path) -> None:
    """1,000 skills take at most 3 times a loop that opens each and reads its first 4 KiB."""
    paths = [str(write_skill(f"skill-{chr(97 + n % 26)}{n}", b"\xff" * 8000, "核对" * 40))
             for n in range(1000)]
    ratio = min(_ratio(paths, tmp_path / "skills") for _ in range(5))
    assert ratio <= 3, f"{ratio:.2f} times"


def _ratio(paths: list[str], root: Path) -> float:
    start = time.perf_counter()
    for path in paths:
        with open(path, "rb") as stream:  # noqa: PTH123 - the barest loop there is
            stream.read(4096)
    middle = time.perf_counter()
    assert len(skills.scan_skills(root, limit=1000)) == 1000
    return (time.perf_counter() - middle) / (middle - start)


def _read_by_the_process() -> int:
    with Path("/proc/self/io").open() as account:
        return int(account.readline().partition(":")[2])


def _count_bytes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes that come from each file, by path; any other road to a file fails the test."""
    counted: Counter[str] = Counter()
    paths: dict[int, str] = {}
    plain_open, plain_read = os.open, os.read

    def opened(path: str | Path, flags: int) -> int:
        descriptor = plain_open(path, flags)
        paths[descriptor] = str(path)
        return descriptor

    def read(descriptor: int, size: int) -> bytes:
        data = plain_read(descriptor, size)
        counted[paths[descriptor]] += len(data)
        return data

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a skill is read through read_start only")

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "read", read)
    monkeypatch.setattr("builtins.open", refused)
    monkeypatch.setattr(Path, "open", refused)
    return counted
