"""The scaffolds: generated from the solution layers, committed, compared."""

from __future__ import annotations

from pathlib import Path

from course.blank import blank
from course.outline import Chapter, Course, holes_in
from course.snapshot import REMOVED, File, Tree, read_tree, replace_file


def scaffold(course: Course, chapter: Chapter) -> dict[str, File]:
    """The chapter's layer with its answers taken out: what starters/<name> must hold."""
    layer = read_tree(course.root / "solutions" / chapter.name)
    holes = {path: holes_in(chapter, path) for path in layer}
    return {path: File(blank(file.data.decode(), holes[path], path).encode(), file.executable)
            if holes[path] else file for path, file in layer.items() if path != REMOVED}


def differences(course: Course, chapter: Chapter) -> list[str]:
    """Paths in starters/<name> that are stale, missing or not made from the layer."""
    wanted = scaffold(course, chapter)
    folder = course.root / "starters" / chapter.name
    found: Tree = read_tree(folder) if folder.is_dir() else {}
    return [f"starters/{chapter.name}/{path}" for path in sorted({*wanted, *found})
            if wanted.get(path) != found.get(path)]


def write(course: Course, chapter: Chapter) -> list[str]:
    """Make starters/<name> hold the scaffold; the paths that were written or removed."""
    changed = differences(course, chapter)
    wanted = scaffold(course, chapter)
    for path in changed:
        target = course.root / path
        file = wanted.get(str(Path(path).relative_to(Path("starters", chapter.name)).as_posix()))
        if file is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, file.data)
            target.chmod(0o755 if file.executable else 0o644)
    return changed
