"""Paths a stranger asks for, judged twice: as text, then as the disk really has them."""

from __future__ import annotations

from pathlib import Path


def lexical(root: Path, request: str) -> Path:
    """Return where `request` lies below `root`, judged by its text alone; no disk is touched.

    A request is written with `/`, is relative, and means the same file on every system, so the
    answer here never depends on the system it is given on. `.` is the root itself, and a `..`
    that stays inside is folded away. Errors: INVALID_PATH (empty, NUL, not Unicode, absolute or
    with a drive on any system, `~`, a name that another system would read differently) and
    PATH_ESCAPE (a `..` that climbs above the root).
    """
    raise NotImplementedError("Lab 09.1 path containment 尚未实现")


def contained(root: Path, request: str, *, must_exist: bool = True) -> Path:
    """Return the real path of `request`: every link followed, and still inside the real root.

    Links that stay inside are fine. With `must_exist=False` the last parts may be missing (a file
    about to be written), yet what is there, a dangling link too, must not lead out. The answer is
    true at the moment it is given; ask again before every use. Errors: those of `lexical`,
    PATH_ESCAPE (a link leads out) and NOT_FOUND (missing, a loop of links, not reachable).
    """
    raise NotImplementedError("Lab 09.1 path containment 尚未实现")
