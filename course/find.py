"""Find the course root or practice folder that a command is meant for, by walking up."""

from __future__ import annotations

from pathlib import Path

from course.errors import CourseBroken, UsageProblem
from course.manifest import Course, load_course
from course.outline import Chapter
from course.practice import RECORD, open_practice


def find_course(root: Path | None) -> Course:
    """The course at `root`, or the one that the current folder lies in."""
    if root is not None:
        if not (root / "labs" / "course.toml").is_file():
            if not root.is_dir():
                raise UsageProblem(f"--root {root} is no folder")
            raise CourseBroken(f"{root} is no course: it has no labs/course.toml")
        return load_course(root.resolve())
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "labs" / "course.toml").is_file():
            return load_course(folder)
    raise CourseBroken(f"no course at {here} or above it (a folder with labs/course.toml)",
                       "course --root DIR …   (or set COURSE_ROOT)")


def outline_here(root: Path | None) -> tuple[Course, list[Chapter]]:
    """The outline of the course, or of the practice folder, that we are in."""
    start = root or Path.cwd()
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / RECORD).is_file():
            desk = open_practice(folder)
            return desk.outline(), list(desk.manifest.chapters)
        if (folder / "labs" / "course.toml").is_file():
            break
    course = find_course(root)
    return course, list(course.chapters())
