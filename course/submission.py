"""What a submission holds, before anything of it is believed: entries, their rules, their caps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from course.errors import RED, CourseError

MIB = 1024 * 1024
MOST_ENTRIES = 10_000  # that count: not those in folders that are passed over
MOST_MEMBERS = 100_000  # of an archive, all of them
MOST_BYTES = 256 * MIB  # of all entries together, unpacked
LARGEST_FILE = 128 * MIB  # of a file that is not taken
LARGEST_TAKEN = MIB
MOST_TAKEN = 16 * MIB  # of all files that have the name of one that is wanted
DEEPEST = 32
LONGEST_NAME = 255  # bytes
LONGEST_PATH = 1024
SPECIAL_BITS = 0o6000  # set-user-id and set-group-id

ENVIRONMENT = "pyvenv.cfg"  # marks a virtual environment, whatever its folder is called
# Left by tools; nothing in them is looked at. So is everything whose name begins with a dot.
PASSED_OVER = frozenset({"__pycache__", "node_modules", "venv", "env", "virtualenv", "__MACOSX"})


class Rejected(CourseError):
    """A submission that is not graded; the message is the cause, in words for the student."""

    kind = "rejected"
    exit_code = RED

    @property
    def cause(self) -> str:
        """What the student has to change."""
        return self.message


@dataclass(frozen=True)
class Submission:
    """The files that grading takes, by their path in the chapter, and what the student may note."""

    name: str
    files: Mapping[str, bytes]
    notes: Sequence[str] = ()


class Kind(StrEnum):
    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a link"
    SPECIAL = "a device, pipe or socket"


@dataclass(frozen=True)
class Entry:
    """One file, folder or link of a submission. `data` is there only for names that are wanted."""

    path: str
    kind: Kind
    size: int = 0
    mode: int = 0
    links: int = 1
    sparse: bool = False
    data: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


def check_entry(entry: Entry) -> None:
    """Refuse what no submission may contain anywhere, whether or not it is taken."""
    place = shown(entry.path)
    if entry.kind is Kind.SPECIAL:
        raise Rejected(f"{place} is {entry.kind}; a submission holds only ordinary files")
    if entry.kind is Kind.FILE and entry.mode & SPECIAL_BITS:
        raise Rejected(f"{place} has its set-user-id or set-group-id bit set")
    if entry.kind is Kind.FILE and entry.size > LARGEST_FILE:
        size = f"{entry.size / MIB:,.0f} MiB, more than {LARGEST_FILE // MIB} MiB"
        raise Rejected(f"{place} is too large ({size})")
    if entry.sparse:
        raise Rejected(f"{place} is a sparse file, larger than what is stored of it")


def checked_path(raw: str) -> str:
    """The path of an archive's member with / between its parts, or Rejected."""
    path = raw.replace("\\", "/")
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        raise Rejected(f"{shown(raw)} is an absolute path; pack the folder itself")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Rejected(f"{shown(raw)} leads out of the submission (..)")
    if "\0" in path:
        raise Rejected(f"{shown(raw)} has a NUL character in its name")
    check_depth(parts)
    return "/".join(parts)


def check_depth(parts: Sequence[str]) -> None:
    """Refuse paths that other file systems and tools cannot hold."""
    place = shown("/".join(parts[:DEEPEST]))
    if len(parts) > DEEPEST:
        raise Rejected(f"{place} lies more than {DEEPEST} folders deep")
    if any(len(part.encode("utf-8", "surrogatepass")) > LONGEST_NAME for part in parts):
        raise Rejected(f"{place} has a name longer than {LONGEST_NAME} bytes")
    if sum(map(len, parts)) + len(parts) > LONGEST_PATH:
        raise Rejected(f"{place} is longer than {LONGEST_PATH} characters")


def passed_over(part: str, wanted: Sequence[str]) -> bool:
    """Whether a folder or file of this name is not looked at, unless a wanted path needs it."""
    needed = any(part in PurePosixPath(path).parts for path in wanted)
    return not needed and (part.startswith(".") or part in PASSED_OVER)


def shown(text: str, longest: int = 120) -> str:
    """Text of the submission for a message: one line, nothing that a terminal would obey."""
    cut = text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 :]}"
    seen = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)
    # Spaces at an end cannot be seen, and may be what is wrong with a name.
    return re.sub("^ +| +$", lambda ends: r"\x20" * len(ends[0]), seen) or "(empty)"
