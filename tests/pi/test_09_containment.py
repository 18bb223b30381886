"""Chapter 09: folders full of links, requests of strangers, and nothing outside is ever touched."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pi_course.containment import contained, lexical
from pi_course.errors import CourseError
from pi_course.workspace import Workspace

from tests.pi.arbitrary import outcome

NAMES = ["a", "b", "c", "文", "link", "loop"]
STEPS = [*NAMES, *NAMES, "..", "..", ".", "", "out", "secret.txt", "new", "a b", "...", "~", "C:",
         "con", "a.", "a:b", "\\", "..\\..", "\0", "\ud800", "nul.txt", "*", "-"]  # fmt: skip
CODES = {"INVALID_PATH", "PATH_ESCAPE", "NOT_FOUND"}
FILE_CODES = CODES | {"NOT_A_FILE", "NOT_A_FOLDER", "NOT_TEXT", "WRITE_FAILED", "NO_MATCH"}


def plant(home: Path, chance: random.Random) -> Path:
    """A root with folders, files and links, inside, out, dangling, absolute and in circles."""
    root, outside = home / "root", home / "out"
    for folder in (root, outside, home / "root-2"):
        folder.mkdir(parents=True)
        (folder / "secret.txt").write_text("inside" if folder == root else "SECRET")
    folders = [root]
    targets = ["..", "../out", "../root-2", "../out/secret.txt", "../out/new", "nowhere", ".", "a",
               "b", "a/b", "link", "loop", "/", "/etc", str(outside), str(root), str(root / "a"),
               "../../out", "../root", "../root/../out"]  # fmt: skip
    for _ in range(14):
        path = chance.choice(folders) / chance.choice(NAMES)
        if os.path.lexists(path):
            continue
        kind = chance.choice(["folder", "file", "link", "link", "link"])
        if kind == "folder":
            path.mkdir()
            folders.append(path)
        elif kind == "file":
            path.write_text("inside")
        else:
            path.symlink_to(chance.choice(targets))
    return root


def request(chance: random.Random) -> str:
    """What a stranger might ask for."""
    start = chance.choice(["", "", "", "", "", "/", "../", "./", "//", "../root/", "C:/"])
    return start + "/".join(chance.choice(STEPS) for _ in range(chance.randint(0, 5)))


def seen_outside(root: Path) -> dict[str, str]:
    """Every file, folder and link beside the root, with what is in it."""
    found = {}
    for path in sorted(root.parent.rglob("*")):
        if not path.is_relative_to(root):
            is_file = path.is_file() and not path.is_symlink()
            found[str(path)] = path.read_text() if is_file else ""
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_request_and_no_link_leads_outside(tmp_path: Path, seed: int) -> None:
    """Each answer is a real path below the real root, or one of three codes; text alone agrees."""
    chance = random.Random(seed)
    root = plant(tmp_path, chance)
    real = os.path.realpath(root)
    for _ in range(60):
        asked = request(chance)
        for must_exist in (True, False):
            found = outcome(lambda a=asked, m=must_exist: contained(root, a, must_exist=m))
            if isinstance(found, Path):
                assert os.path.realpath(found) == str(found), asked
                assert os.path.commonpath([real, found]) == real, asked
                assert found.exists() or not must_exist, asked
                text = lexical(root, asked)
                assert text.is_relative_to(root) and ".." not in text.parts, asked
            else:
                assert found in CODES, asked
            if must_exist is False and found == "NOT_FOUND":
                assert outcome(lambda a=asked: contained(root, a)) == "NOT_FOUND"


@pytest.mark.parametrize("seed", range(40, 70))
def test_reading_and_writing_anything_leaves_the_outside_as_it_was(
    tmp_path: Path, seed: int
) -> None:
    """Random reads, writes, edits and lists: no secret comes in, and nothing outside changes."""
    chance = random.Random(seed)
    root = plant(tmp_path, chance)
    workspace = Workspace(root)
    before = seen_outside(root)
    for _ in range(40):
        asked = request(chance)
        deed = chance.choice(["read", "write", "edit", "list"])
        try:
            if deed == "read":
                assert "SECRET" not in workspace.read_text(asked), asked
            elif deed == "write":
                workspace.write_text(asked, "inside, written")
                assert workspace.read_text(asked) == "inside, written"
            elif deed == "edit":
                workspace.replace_once(asked, "inside", "inside")
            else:
                workspace.list_dir(asked)
        except CourseError as error:
            assert error.code in FILE_CODES, (asked, error.code)
    assert seen_outside(root) == before


def test_what_the_disk_would_open_inside_is_given_and_nothing_else(tmp_path: Path) -> None:
    """Plain requests are not refused out of caution: what is really inside is found."""
    given = 0
    for seed in range(30):
        chance = random.Random(seed)
        root = plant(tmp_path / str(seed), chance)
        real = os.path.realpath(root)
        for _ in range(60):
            asked = "/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 4)))
            there = os.path.realpath(root / asked)
            is_inside = os.path.commonpath([real, there]) == real
            is_there = (root / asked).exists()
            wanted: object = Path(there) if is_there else "NOT_FOUND"
            found = outcome(lambda r=root, a=asked: contained(r, a))
            assert found == (wanted if is_inside else "PATH_ESCAPE"), (seed, asked)
            given += isinstance(found, Path)
    assert given > 100
