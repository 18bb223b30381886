"""Packages from outside the standard library that the code of a chapter needs."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from course.errors import Unavailable
from course.outline import Chapter


def require(chapters: Iterable[Chapter]) -> None:
    """Unavailable names the packages that the chapters need and this interpreter does not have."""
    for chapter in chapters:
        if missing := [name for name in chapter.packages if not _is_installed(name)]:
            names = " ".join(missing)
            raise Unavailable(f"chapter {chapter.id} needs {names}, which is not installed for "
                              f"{sys.executable}", f"{sys.executable} -m pip install {names}")


def _is_installed(name: str) -> bool:
    from importlib import metadata  # most chapters need no package, and this takes a while

    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
