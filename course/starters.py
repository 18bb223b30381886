"""The scaffolds: generated from the solution layers, committed, compared."""

from __future__ import annotations

import ast
from pathlib import Path

from course.blank import blank, find_holes
from course.manifest import Course
from course.outline import Chapter, holes_in
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


def wrong_reds(course: Course, chapter: Chapter) -> list[str]:
    """One sentence for each hole of the committed scaffold that does not raise its first red."""
    problems = []
    for path in chapter.submit:
        starter = course.root / "starters" / chapter.name / path
        source = starter.read_text("utf-8") if starter.is_file() else ""
        declared = holes_in(chapter, path)
        for name, node in find_holes(source, list(declared)).items():
            wanted = f"raise NotImplementedError({declared[name]!r})"
            if (found := ast.unparse(node.body[-1])) != wanted:
                problems.append(f"labs/{chapter.name}/chapter.toml declares {declared[name]!r} for "
                                f"{name}, but starters/{chapter.name}/{path} says {found!r}")
    return problems


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
