"""Lab 12.2: a skill is read when it is asked for, and no request leaves its folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pi_course import resources
from pi_course.errors import CourseError

HEADER = "---\nname: review\ndescription: Reviews a change\n---\n"


def _root(folder: Path) -> Path:
    """A root with skill:review, next to things that a request must not reach."""
    skill = folder / "root/skills/review"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(f"{HEADER}\nRead first.\n".encode())
    (skill / "references/checklist.md").write_bytes(b"1. tests\n")
    (skill / "notes.md").write_bytes(b"notes\n")
    for name in ("outside.md", "root/skills/outside.md", "root/skills/review-old/notes.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"secret\n")
    return folder / "root"


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _outcome(action: Callable[[], object]) -> str:
    """The code that an action is refused with, or "accepted"."""
    try:
        action()
    except CourseError as error:
        return error.code
    return "accepted"


def test_activation_reads_what_was_asked_for_and_nothing_else(tmp_path: Path) -> None:
    """Body, digest and the files asked for come back, once each; a renamed skill does not."""
    root = _root(tmp_path)
    source = root / "skills/review/SKILL.md"
    catalog = resources.discover_resources([root])
    before = repr(catalog)

    asked = ["references/checklist.md", "notes.md", "references/checklist.md", "./notes.md"]
    active = resources.activate_skill(catalog, "review", resources=asked)
    assert (active.name, active.body) == ("review", "\nRead first.\n")
    assert (active.root, active.source) == (_real(source.parent), _real(source))
    assert active.digest == hashlib.sha256(source.read_bytes()).hexdigest()
    assert [(file.request, file.source, file.content) for file in active.files] == [
        ("references/checklist.md", _real(source.parent / "references/checklist.md"), "1. tests\n"),
        ("notes.md", _real(source.parent / "notes.md"), "notes\n"),
        ("./notes.md", _real(source.parent / "notes.md"), "notes\n"),
    ]
    assert resources.activate_skill(catalog, "review").files == ()

    source.write_bytes(f"{HEADER}Read again.\n".replace("\n", "\r\n").encode())
    (source.parent / "notes.md").write_bytes(b"new\r\nnotes")
    active = resources.activate_skill(catalog, "review", resources=["notes.md"])
    assert (active.body, active.files[0].content) == ("Read again.\n", "new\nnotes")
    assert active.digest == hashlib.sha256(source.read_bytes()).hexdigest()

    limits = resources.ResourceLimits(file_bytes=source.stat().st_size)
    tight = resources.discover_resources([root], limits=limits)
    long = source.parent / "references/long.md"
    for content, outcome in [
        (b"x" * limits.file_bytes, "accepted"),
        (b"x" * (limits.file_bytes + 1), "UNREADABLE"),
        ("für".encode("latin-1"), "UNREADABLE"),
    ]:
        long.write_bytes(content)
        ask = partial(resources.activate_skill, tight, "review", resources=["references/long.md"])
        assert _outcome(ask) == outcome
    source.write_bytes(source.read_bytes() + b".")
    assert _outcome(lambda: resources.activate_skill(tight, "review")) == "UNREADABLE"
    source.write_bytes(HEADER.replace("review", "deploy").encode())
    assert _outcome(lambda: resources.activate_skill(catalog, "review")) == "SKILL_CHANGED"
    assert _outcome(lambda: resources.activate_skill(catalog, "absent")) == "UNKNOWN_SKILL"
    assert repr(catalog) == before


def test_a_request_whose_text_leads_out_is_refused(tmp_path: Path) -> None:
    """Empty, absolute and climbing requests are refused on every system, a twin folder too."""
    root = _root(tmp_path)
    catalog = resources.discover_resources([root])

    def outcome(request: str) -> str:
        return _outcome(lambda: resources.activate_skill(catalog, "review", resources=[request]))

    assert outcome("references/checklist.md") == "accepted"
    absolute = str(_real(root / "skills/review/notes.md"))
    for request in ("", absolute, "/etc/hosts", "C:\\notes.md", "notes.md\0"):
        assert (request, outcome(request)) == (request, "INVALID_PATH")
    for request in ("../outside.md", "../../../outside.md", "../review-old/notes.md"):
        assert (request, outcome(request)) == (request, "PATH_ESCAPE")
    assert outcome("..\\outside.md") in {"INVALID_PATH", "PATH_ESCAPE"}
    assert outcome("references/missing.md") == "NOT_FOUND"


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    """A link may point anywhere inside the skill and nowhere else; SKILL.md is no exception."""
    root = _root(tmp_path)
    skill = root / "skills/review"
    (skill / "references/inside.md").symlink_to(skill / "notes.md")
    (skill / "references/escape.md").symlink_to(tmp_path / "outside.md")
    (skill / "shelf").symlink_to(root / "skills/review-old", target_is_directory=True)
    catalog = resources.discover_resources([root])

    def outcome(*requests: str) -> str:
        return _outcome(lambda: resources.activate_skill(catalog, "review", resources=requests))

    assert outcome("references/inside.md") == "accepted"
    assert outcome("references/escape.md") == "PATH_ESCAPE"
    assert outcome("shelf/notes.md") == "PATH_ESCAPE"

    (tmp_path / "outside.md").write_bytes(f"{HEADER}From elsewhere.\n".encode())
    (skill / "SKILL.md").unlink()
    (skill / "SKILL.md").symlink_to(tmp_path / "outside.md")
    assert outcome() == "PATH_ESCAPE"

    moved = tmp_path / "moved"
    shutil.copytree(skill, moved, symlinks=True)
    (moved / "SKILL.md").unlink()
    (moved / "SKILL.md").write_bytes(f"{HEADER}From elsewhere.\n".encode())
    shutil.rmtree(skill)
    skill.symlink_to(moved, target_is_directory=True)
    assert outcome() == "PATH_ESCAPE"
