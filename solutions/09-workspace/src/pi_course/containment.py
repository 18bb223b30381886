"""Paths a stranger asks for, judged twice: as text, then as the disk really has them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

from pi_course.errors import CourseError


def lexical(root: Path, request: str) -> Path:
    """Return where `request` lies below `root`, judged by its text alone; no disk is touched.

    A request is written with `/`, is relative, and means the same file on every system, so the
    answer here never depends on the system it is given on. `.` is the root itself, and a `..`
    that stays inside is folded away. Errors: INVALID_PATH (empty, NUL, not Unicode, absolute or
    with a drive on any system, `~`, a name that another system would read differently) and
    PATH_ESCAPE (a `..` that climbs above the root).
    """
    readings = (PurePosixPath(request), PureWindowsPath(request))
    if not _is_text(request) or request.startswith("~") or any(way.anchor for way in readings):
        raise CourseError("INVALID_PATH", f"need a relative path inside the root: {request!r}")
    posix, windows = (_fold(way.parts, request) for way in readings)
    if posix != windows or any(_AMBIGUOUS.search(name) for name in posix):
        raise CourseError("INVALID_PATH", f"means another file on another system: {request!r}")
    return root.joinpath(*posix)


def contained(root: Path, request: str, *, must_exist: bool = True) -> Path:
    """Return the real path of `request`: every link followed, and still inside the real root.

    Links that stay inside are fine. With `must_exist=False` the last parts may be missing (a file
    about to be written), yet what is there, a dangling link too, must not lead out. The answer is
    true at the moment it is given; ask again before every use. Errors: those of `lexical`,
    PATH_ESCAPE (a link leads out) and NOT_FOUND (missing, a loop of links, not reachable).
    """
    home = Path(os.path.realpath(root))
    real = Path(os.path.realpath(lexical(home, request)))
    if not real.is_relative_to(home):
        raise CourseError("PATH_ESCAPE", f"a link leads out of the root: {request!r}")
    try:
        real.stat()
    except OSError as error:
        if must_exist or not isinstance(error, FileNotFoundError):
            raise CourseError("NOT_FOUND", f"no such file: {request!r}") from error
    return real


# Windows drops a dot or a blank at the end, keeps device names, and reads `:` as a stream.
_AMBIGUOUS = re.compile(r"(?i)[. ]$|:|^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


def _is_text(request: str) -> bool:
    try:
        request.encode()
    except UnicodeEncodeError:
        return False
    return request != "" and "\0" not in request


def _fold(parts: Iterable[str], request: str) -> list[str]:
    kept: list[str] = []
    for name in parts:
        if name != "..":
            kept.append(name)
        elif kept:
            kept.pop()
        else:
            raise CourseError("PATH_ESCAPE", f"leaves the root: {request!r}")
    return kept
