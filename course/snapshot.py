"""Trees of files as values: read one, fold layers into one, write one, digest one.

A tree maps POSIX paths to files; it knows nothing of labs. Later layers replace earlier files,
and a file named REMOVED at a layer's top lists paths (one a line) that the layer takes away.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from course.errors import CourseBroken
from course.manifest import Course

REMOVED = "REMOVED"
LOCK = "checkpoints/checkpoints.lock"
# Left behind by interpreters and editors; never part of a tree.
LEFTOVERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"})


@dataclass(frozen=True)
class File:
    """Raw bytes and whether the file may be executed."""

    data: bytes
    executable: bool = False


Tree = Mapping[str, File]


def read_tree(folder: Path) -> dict[str, File]:
    """All regular files below `folder`. Links and special files are refused by name."""
    tree: dict[str, File] = {}
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFTOVERS)
        for name in sorted([*names, *(f for f in folders if Path(here, f).is_symlink())]):
            path = Path(here, name)
            mode = path.lstat().st_mode
            if name in LEFTOVERS or name.endswith(".pyc"):
                continue
            if not stat.S_ISREG(mode):
                raise CourseBroken(f"{path} is not a regular file; layers hold only files")
            relative = path.relative_to(folder).as_posix()
            tree[relative] = File(path.read_bytes(), bool(mode & stat.S_IXUSR))
    return tree


def overlay(below: Tree, layer: Tree) -> dict[str, File]:
    """`below` with the layer's files over it and its REMOVED paths gone."""
    tree = dict(below)
    removed = layer[REMOVED].data.decode().split("\n") if REMOVED in layer else []
    for path in filter(None, map(str.strip, removed)):
        if path not in tree:
            raise CourseBroken(f"REMOVED lists {path}, which no earlier layer has")
        del tree[path]
    tree.update((path, file) for path, file in layer.items() if path != REMOVED)
    _check_names(tree)
    return tree


def fold(course: Course, names: Iterable[str], base: str) -> dict[str, File]:
    """The base tree with the layers of these chapters over it, in order."""
    tree = read_tree(course.root / "checkpoints" / base)
    for name in names:
        tree = overlay(tree, read_tree(course.root / "solutions" / name))
    return tree


def checkpoint(course: Course, chapter_id: str) -> dict[str, File]:
    """The code as it stands after this chapter."""
    return fold(course, course.line_to(chapter_id), course.base_of(chapter_id))


def checkpoint_before(course: Course, chapter_id: str) -> dict[str, File]:
    """The code as it stands before this chapter: what its practice is built on."""
    return fold(course, course.line_to(chapter_id)[:-1], course.base_of(chapter_id))


def digest(tree: Tree) -> str:
    """sha256 over sorted POSIX paths and raw contents, each preceded by its length in bytes."""
    sha = hashlib.sha256()
    for path in sorted(tree):
        for part in (path.encode(), tree[path].data):
            sha.update(len(part).to_bytes(8, "big"))
            sha.update(part)
    return sha.hexdigest()


def write_tree(tree: Tree, folder: Path) -> None:
    """Write every file below `folder`, which must be there already."""
    made = {folder}
    for path in sorted(tree):
        target = folder / path
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        target.write_bytes(tree[path].data)
        if tree[path].executable:
            target.chmod(target.stat().st_mode | 0o111)


def read_lock(course: Course) -> dict[str, str]:
    """Chapter folder → digest, as checkpoints.lock records it."""
    path = course.root / LOCK
    if not path.is_file():
        return {}
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    rows = [line for line in lines if line and not line[0].startswith("#")]
    if any(len(row) != 2 for row in rows):
        raise CourseBroken(f"{path}: each line is a chapter and a digest",
                           "course checkpoint --lock")
    return {name: value for name, value in rows}


def digests(course: Course) -> dict[str, str]:
    """Chapter folder → digest of its folded tree, as the layers are now."""
    found: dict[str, str] = {}
    trees: dict[tuple[str, ...], dict[str, File]] = {}
    for name in course.names:
        line = course.line_to(name)
        below = trees.get(line[:-1]) or fold(course, line[:-1], course.base_of(name))
        trees[line] = overlay(below, read_tree(course.root / "solutions" / name))
        found[name] = digest(trees[line])
    return found


def check_lock(course: Course, chapter_id: str, tree: Tree) -> None:
    """Refuse a tree whose digest is not the one in checkpoints.lock."""
    name = course.name_of(chapter_id)
    recorded = read_lock(course).get(name)
    if recorded != digest(tree):
        was = recorded[:12] if recorded else "nothing"
        raise CourseBroken(
            f"{LOCK} has {was} for {name}, but its layers fold to {digest(tree)[:12]}: "
            "a layer was changed without a new lock",
            "course checkpoint --lock   (then look at which chapters moved)",
        )


def write_lock(course: Course) -> list[str]:
    """Write checkpoints.lock anew; the folder names of the chapters that moved."""
    before, now = read_lock(course), digests(course)
    lines = ["# Made by `course checkpoint --lock`: chapter, digest of its folded tree."]
    lines += [f"{name}  {value}" for name, value in now.items()]
    replace_file(course.root / LOCK, "\n".join([*lines, ""]).encode())
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def replace_file(path: Path, data: bytes) -> None:
    """Write the file whole or not at all."""
    replace_by_parts(path, (data,))


def replace_by_parts(path: Path, parts: Iterable[bytes]) -> None:
    """The same for what comes in parts: one of them at a time is held."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.writelines(parts)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _check_names(tree: Tree) -> None:
    """One name, one file, on every file system: no case or normalisation twins."""
    seen: dict[str, str] = {}
    for path in tree:
        key = unicodedata.normalize("NFC", path).casefold()
        if seen.setdefault(key, path) != path:
            raise CourseBroken(f"{path} and {seen[key]} are one name on some file systems")
        for parent in PurePosixPath(path).parents:
            if str(parent) in tree:
                raise CourseBroken(f"{parent} is a file, but {path} needs it as a folder")
