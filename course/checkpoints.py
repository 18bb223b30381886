"""Checkpoints as a person asks for them: folded against the lock, written, tested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from course.errors import UsageProblem
from course.labs import run_labs
from course.manifest import Course
from course.outline import Chapter
from course.results import RunResult
from course.scratch import scratch_folder
from course.snapshot import File, Tree, check_lock, checkpoint, write_lock, write_tree


def fold_checked(course: Course, chapter_id: str) -> dict[str, File]:
    """The code after this chapter, refused where the lock does not know it."""
    tree = checkpoint(course, chapter_id)
    check_lock(course, chapter_id, tree)
    return tree


def relock(course: Course) -> list[str]:
    """Write checkpoints.lock anew; the chapters whose folded tree moved."""
    return write_lock(course)


def write_new(course: Course, tree: Tree, folder: Path) -> None:
    """Write the tree to a folder that is new or empty and lies outside the course."""
    if folder.resolve().is_relative_to(course.root.resolve()):
        raise UsageProblem(f"{folder} lies inside the course", "choose a folder outside it")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageProblem(f"{folder} exists and is not an empty folder", "choose another name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_tree(tree, folder)
    except OSError as error:
        raise UsageProblem(f"{folder} cannot be written: {error.strerror or error}") from None


def with_tests(course: Course, chapters: tuple[Chapter, ...], tree: Tree) -> dict[str, File]:
    """The tree with the test files of these chapters in tests/."""
    files = dict(tree)
    for chapter in chapters:
        for lab in chapter.labs:
            path = course.root / "labs" / chapter.name / lab.tests
            files[lab.file] = File(path.read_bytes())
    return files


def tests_of(
    course: Course, chapter_id: str, tree: Tree, progress: Callable[[str], None]
) -> RunResult:
    """Every lab of every chapter up to this one, run on the tree."""
    chapters = tuple(course.chapter(name) for name in course.line_to(chapter_id))
    with scratch_folder() as folder:
        write_tree(with_tests(course, chapters, tree), folder)
        progress(f"every lab through chapter {chapters[-1].id}")
        return run_labs(folder, chapters, [lab for c in chapters for lab in c.labs])
