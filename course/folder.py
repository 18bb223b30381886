"""The entries of a folder that nobody has vouched for. Every step goes through a descriptor.

A name is opened once, without following a link, and judged by what was opened: what is swapped
afterwards changes nothing. Nothing is executed, and nothing outside the folder is ever opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from course.submission import (
    ENVIRONMENT,
    LARGEST_TAKEN,
    MOST_MEMBERS,
    Entry,
    Kind,
    Rejected,
    check_depth,
    passed_over,
)

SAFELY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def folder_entries(path: Path, wanted: Sequence[str]) -> Iterator[Entry]:
    """Everything below the folder, except in what is passed over; contents of wanted names."""
    folder = os.open(path, SAFELY | os.O_DIRECTORY)
    try:
        yield from _below(folder, (), wanted, iter(range(MOST_MEMBERS)))
    finally:
        os.close(folder)


def file_entry(path: Path) -> Entry:
    """A submission that is one file."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _entry(folder, path.name, path.name, [path.name])
    finally:
        os.close(folder)


def _below(
    folder: int, above: tuple[str, ...], wanted: Sequence[str], budget: Iterator[int]
) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for name in (item.name for item in found):
            if next(budget, None) is None:
                raise Rejected(f"more than {MOST_MEMBERS:,} files; send only your own work")
            if passed_over(name, wanted):
                continue
            parts = (*above, name)
            check_depth(parts)
            entry = _entry(folder, name, "/".join(parts), wanted)
            if entry.kind is not Kind.FOLDER:
                yield entry
                continue
            inner = os.open(name, SAFELY | os.O_DIRECTORY, dir_fd=folder)
            try:
                if not _is_environment(inner, wanted):
                    yield entry
                    yield from _below(inner, parts, wanted, budget)
            finally:
                os.close(inner)


def _entry(folder: int, name: str, path: str, wanted: Sequence[str]) -> Entry:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    names = {PurePosixPath(want).name for want in wanted}
    if name not in names or not stat.S_ISREG(found.st_mode):
        return _described(path, found)
    file = os.open(name, SAFELY, dir_fd=folder)
    try:
        found = os.fstat(file)
        data = _read(file) if stat.S_ISREG(found.st_mode) else None
        return _described(path, found, data)
    finally:
        os.close(file)


def _described(path: str, found: os.stat_result, data: bytes | None = None) -> Entry:
    kinds = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.FOLDER, stat.S_IFLNK: Kind.LINK}
    kind = kinds.get(stat.S_IFMT(found.st_mode), Kind.SPECIAL)
    return Entry(path, kind, found.st_size, found.st_mode, found.st_nlink, data=data)


def _read(file: int) -> bytes:
    """At most one byte more than may be taken, whatever the size was said to be."""
    data = bytearray()
    while len(data) <= LARGEST_TAKEN and (
        chunk := os.read(file, LARGEST_TAKEN + 1 - len(data))
    ):
        data += chunk
    return bytes(data)


def _is_environment(folder: int, wanted: Sequence[str]) -> bool:
    """Whether the folder is a virtual environment that the work was not done in."""
    own = {want.partition("/")[0] for want in wanted}
    return _holds(folder, ENVIRONMENT) and not any(_holds(folder, name) for name in own)


def _holds(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
