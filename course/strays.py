"""Files of a course that no manifest explains, and files that a manifest asks for in vain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from course.manifest import Course
from course.outline import Chapter
from course.snapshot import LEFTOVERS, REMOVED

TEXTS = ("README.md", "README.zh.md")


def find_strays(course: Course, chapters: list[Chapter]) -> list[str]:
    """One sentence for each unexplained or missing file, naming it."""
    root = course.root
    explained = {"labs/course.toml", "checkpoints/checkpoints.lock"}
    for chapter in chapters:
        explained |= set(_of_chapter(root, chapter))
    bases = {f"checkpoints/{track.base}/" for track in course.tracks if track.base}
    problems = [f"{path} is missing" for path in sorted(explained) if not (root / path).is_file()]
    known = {chapter.name for chapter in chapters}
    for path in _files(root):
        parts = path.split("/")
        other_chapter = parts[0] != "checkpoints" and parts[1] in set(course.names) - known
        if path not in explained and not path.startswith(tuple(bases)) and not other_chapter:
            problems.append(f"{path} is explained by no manifest")
    return problems


def _of_chapter(root: Path, chapter: Chapter) -> Iterator[str]:
    labs, layer = f"labs/{chapter.name}", f"solutions/{chapter.name}"
    yield from (f"{labs}/{name}" for name in ("chapter.toml", *TEXTS, *chapter.extras))
    yield from (f"{labs}/{lab.tests}" for lab in chapter.labs)
    yield from (f"{labs}/{replay.scenarios}" for replay in chapter.replays)
    if chapter.faults:
        yield f"{labs}/faults.py"
    yield from (f"{layer}/{path}" for path in (*chapter.submit, *chapter.given))
    yield from (f"starters/{chapter.name}/{path}" for path in (*chapter.submit, *chapter.given))
    if (root / layer / REMOVED).is_file():
        yield f"{layer}/{REMOVED}"
    if (root / labs / "hidden").is_dir():
        yield f"{labs}/hidden/probes.py"


def _files(root: Path) -> Iterator[str]:
    for top in ("labs", "solutions", "starters", "checkpoints"):
        for path in sorted((root / top).rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not LEFTOVERS & set(relative.parts):
                yield relative.as_posix()
