"""A session on disk: a tree of entries, one line each, that is only ever added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_course.bench import Clock, Ids
from pi_course.messages import Message
from pi_course.values import JSONValue


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a session file: the canonical JSON of an object with exactly these five fields.

    `parent_id` is None for a root, else the id of an entry before this one. `kind` is any name;
    the payload of a "message" is a message in its JSON form. `at` is in milliseconds.
    """

    id: str
    parent_id: str | None
    kind: str
    payload: JSONValue
    at: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A complete line that is no entry of the tree: its number, from 1, and the code that says why.

    NOT_JSON, BAD_UTF8, INVALID_ENTRY, INVALID_MESSAGE, DUPLICATE_ENTRY or UNKNOWN_PARENT.
    """

    line: int
    code: str


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a session file held; nothing that was found is missing here.

    `kept` are the entries in file order, `quarantined` the lines that were passed over (they stay
    in the file), `torn_tail` the bytes of an unfinished last line (they were moved out of it).
    """

    kept: tuple[Entry, ...]
    quarantined: tuple[BadLine, ...]
    torn_tail: bytes


def recover(path: Path) -> RecoveryReport:
    """Return what the file holds, and leave it ending in a newline, so that a line can be added.

    A line is kept if it is a well formed entry, its id is new, and its parent is None or an entry
    kept before it: so there are no cycles. A last line without a newline gets one if it is such
    an entry. If not, its bytes are first saved in a new file beside this one, `<name>.torn-1` (or
    -2, …; mode 0600), and only then cut off; each step is on the disk (`os.fsync`) before the
    next. To recover again changes nothing.
    Codes: NOT_FOUND (nothing there, or no file: a folder), WRITE_FAILED.
    """
    raise NotImplementedError("Lab 10.1 session recovery 尚未实现")


class SessionStore:
    """A session that is open for adding to it; `report` is what opening it found."""

    def __init__(self, path: Path, report: RecoveryReport, clock: Clock, ids: Ids) -> None:
        """Start with the entries that `report` kept; the last of them is the leaf."""
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    @classmethod
    def open(cls, path: Path, *, clock: Clock, ids: Ids | None = None) -> SessionStore:
        """Return the session in the file at `path`, recovered first; a missing file is made.

        Missing folders too; the file gets mode 0600 and is on the disk with its name (`os.fsync`).
        Without `ids` new entries count on from "entry-1". Codes: those of recover.
        """
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    @property
    def leaf(self) -> str | None:
        """Return the id of the entry that the next one goes below; None when it will be a root."""
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    def append(self, kind: str, payload: object) -> str:
        """Return the id of a new entry below the leaf: on the disk (`os.fsync`), and the leaf now.

        The id, from `ids` with the prefix "entry", is one that no entry has. Codes, with nothing
        added to the tree: NOT_JSON, CYCLIC, INVALID_ENTRY, INVALID_MESSAGE (kind or payload);
        SESSION_CLOSED; WRITE_FAILED; SESSION_CHANGED: the file is gone or does not end where this
        store left it (another writer, or a write that failed half way), so open it again.
        """
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    def branch(self, entry_id: str | None) -> None:
        """Make `entry_id` the leaf, or None: the next entry is a root. Code: UNKNOWN_ENTRY.

        No entry changes and nothing is written: a branch is in the file once it has an entry.
        """
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """Return the entries from a root down to `leaf` (None: the current leaf). UNKNOWN_ENTRY."""
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    def tree(self) -> dict[str | None, tuple[str, ...]]:
        """Return the ids below each entry that has some, in file order; roots are below None."""
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")

    def close(self) -> None:
        """Refuse every later append; to close twice is fine."""
        raise NotImplementedError("Lab 10.2 session tree 尚未实现")


def active_messages(entries: Sequence[Entry]) -> list[Message]:
    """Return the messages recorded along a path, oldest first; other kinds are passed over."""
    raise NotImplementedError("Lab 10.2 session tree 尚未实现")
