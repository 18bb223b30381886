"""`make types`: mypy strict over the tool, the tests, every solution and every starter.

Solutions and starters share one package, so they are checked where they belong together: in the
folded tree of each track's last chapter, and in that tree with every scaffold over it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from course.manifest import Course, load_course
from course.scratch import scratch_folder
from course.snapshot import Tree, checkpoint, overlay, read_tree, write_tree

REPOSITORY = Path(__file__).resolve().parent.parent
OWN = ["course", "tests"]
LEFT_OUT = "tests/(tiny_course|chapter12/right|harness|plugins/(git-tools|right)|pi)/"


def main() -> int:
    """Run mypy over everything; its exit status."""
    cache = REPOSITORY / ".mypy_cache"
    worst = _mypy(OWN, REPOSITORY, cache / "own", "--exclude", LEFT_OUT)
    course = load_course(REPOSITORY)
    with scratch_folder() as scratch:
        for track in course.tracks:
            tree = checkpoint(course, track.chapters[-1])
            for name, files in (("solutions", tree), ("starters", _scaffolds(course, tree))):
                folder = scratch / f"{track.id}-{name}"
                folder.mkdir()
                write_tree(files, folder)
                worst |= _mypy(["src"], folder, cache / f"{track.id}-{name}")
    return worst


def _scaffolds(course: Course, tree: Tree) -> Tree:
    for name in course.names:
        layer = read_tree(course.root / "starters" / name)
        if set(layer) <= set(tree):
            tree = overlay(tree, layer)
    return tree


def _mypy(what: list[str], folder: Path, cache: Path, *more: str) -> int:
    print(f"mypy {' '.join(what)} in {folder.name}", flush=True)  # noqa: T201
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull,
               "--python-version", "3.11", "--cache-dir", str(cache), *more, *what]
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
