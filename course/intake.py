"""Take the allowed files of a submission without ever trusting it.

A submission is a folder, a .zip or .tar archive, a single Python file, or a practice folder as
its owner left it. Only the chapter's own files are taken; what could deceive (links, twins,
compiled code beside them) is refused with a cause that the student can act on.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from course.archive import archive_entries
from course.errors import Unavailable
from course.folder import SAFELY, file_entry, folder_entries
from course.placing import place
from course.submission import (
    LARGEST_TAKEN,
    MIB,
    MOST_BYTES,
    MOST_ENTRIES,
    MOST_TAKEN,
    Entry,
    Kind,
    Rejected,
    Submission,
    check_entry,
    shown,
)

__all__ = ["Rejected", "Submission", "take"]

LARGEST_ARCHIVE = 128 * MIB
SUFFIXES = (".py", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz")
# Not the submission's fault: the grader itself has run out of something.
OURS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


def take(path: Path, allowed: Sequence[str]) -> Submission:
    """The files `allowed` (paths in the chapter) out of whatever is at `path`.

    Raises Rejected with a cause for the student, and nothing else for anything a submission can
    hold; Unavailable where the grader itself has run out of something.
    """
    try:
        found, notes = place(_admitted(_entries(path, allowed)), allowed)
        files = {want: _content(found[want]) for want in allowed}
        return Submission(_name(path), files, (*_renaming(path, allowed), *notes))
    except (Rejected, Unavailable):
        raise
    except OSError as failure:
        if failure.errno in OURS:
            raise Unavailable(f"{shown(str(path))} could not be read: {failure}") from failure
        reason = os.strerror(failure.errno) if failure.errno else "it is damaged"
        raise Rejected(f"the submission cannot be read: {shown(reason)}") from failure
    except Exception as failure:  # whatever a parser makes of bytes that were made to confuse it
        raise Rejected(f"the submission is damaged ({type(failure).__name__})") from failure


def _entries(path: Path, allowed: Sequence[str]) -> Iterator[Entry]:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return folder_entries(path, allowed)
    if stat.S_ISLNK(mode):
        raise Rejected(f"{shown(path.name)} is a link, neither a folder nor an ordinary file; "
                       "send what it leads to")
    if not stat.S_ISREG(mode):
        raise Rejected(f"{shown(path.name)} is neither a folder nor an ordinary file")
    if path.suffix.lower() == ".py":
        entry = file_entry(path)
        own_name = PurePosixPath(allowed[0]).name
        return iter([replace(entry, path=own_name) if _renaming(path, allowed) else entry])
    return _archived(path, allowed)


def _archived(path: Path, allowed: Sequence[str]) -> Iterator[Entry]:
    with os.fdopen(os.open(path, SAFELY), "rb") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_ARCHIVE:
            raise Rejected(f"the archive is larger than {LARGEST_ARCHIVE // MIB} MiB")
        yield from archive_entries(file, allowed)


def _renaming(path: Path, allowed: Sequence[str]) -> list[str]:
    """A note where an upload form renamed a single file, to jane_4711_resources.py or the like."""
    own = PurePosixPath(allowed[0])
    alone = len(allowed) == 1 and path.suffix.lower() == ".py" and path.name != own.name
    if alone and own.stem in path.name and not path.is_dir():
        return [f"{shown(path.name)} was taken as {own}"]
    return []


def _admitted(entries: Iterator[Entry]) -> list[Entry]:
    """All entries in order, once the rules for any entry and the caps on all of them hold."""
    admitted: list[Entry] = []
    size = taken = 0
    for entry in entries:
        check_entry(entry)
        admitted.append(entry)
        size += entry.size if entry.kind is Kind.FILE else 0
        taken += len(entry.data or b"")
        if len(admitted) > MOST_ENTRIES:
            raise Rejected(f"more than {MOST_ENTRIES:,} files; send only your own work")
        if size > MOST_BYTES or taken > MOST_TAKEN:
            raise Rejected(f"more than {MOST_BYTES // MIB} MiB; send only your own work")
    return sorted(admitted, key=lambda entry: entry.path)


def _content(entry: Entry) -> bytes:
    if entry.data is None or len(entry.data) > LARGEST_TAKEN:
        raise Rejected(f"{shown(entry.path)} is longer than {LARGEST_TAKEN // MIB} MiB")
    return entry.data


def _name(path: Path) -> str:
    """The submission's name without the suffixes of archives."""
    name = path.absolute().name
    while name.lower().endswith(SUFFIXES) and PurePosixPath(name).stem:
        name = PurePosixPath(name).stem
    return shown(name)
