"""A session on disk: a tree of entries, one line each, that is only ever added to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pi_course.bench import Clock, Ids
from pi_course.errors import CourseError
from pi_course.framing import encode_record, read_jsonl
from pi_course.messages import Message, from_json
from pi_course.values import JSONValue, deep_freeze, parse_json


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
    if not path.is_file():
        raise CourseError("NOT_FOUND", f"no session file at {path}")
    records, tail = read_jsonl(path)
    kept: dict[str, Entry] = {}
    bad: list[BadLine] = []
    for record in records:
        code = record.error or _refusal(record.value, kept)
        if code is not None:
            bad.append(BadLine(record.line, code))
    torn = b"" if _is_whole(tail.data, kept) else tail.data
    if torn:
        _write(_new_neighbour(path), torn)
        _write(path, b"", cut_at=tail.start)
    elif tail.data:
        _write(path, b"\n")
    return RecoveryReport(tuple(kept.values()), tuple(bad), torn)


class SessionStore:
    """A session that is open for adding to it; `report` is what opening it found."""

    def __init__(self, path: Path, report: RecoveryReport, clock: Clock, ids: Ids) -> None:
        """Start with the entries that `report` kept; the last of them is the leaf."""
        self.report = report
        self._file = path
        self._size = path.stat().st_size
        self._clock = clock
        self._ids = ids
        self._entries = {entry.id: entry for entry in report.kept}
        self._leaf = report.kept[-1].id if report.kept else None
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, clock: Clock, ids: Ids | None = None) -> SessionStore:
        """Return the session in the file at `path`, recovered first; a missing file is made.

        Missing folders too; the file gets mode 0600 and is on the disk with its name (`os.fsync`).
        Without `ids` new entries count on from "entry-1". Codes: those of recover.
        """
        if not path.exists():
            _write(path, b"")
        return cls(path, recover(path), clock, ids or Ids())

    @property
    def leaf(self) -> str | None:
        """Return the id of the entry that the next one goes below; None when it will be a root."""
        return self._leaf

    def append(self, kind: str, payload: object) -> str:
        """Return the id of a new entry below the leaf: on the disk (`os.fsync`), and the leaf now.

        The id, from `ids` with the prefix "entry", is one that no entry has. Codes, with nothing
        added to the tree: NOT_JSON, CYCLIC, INVALID_ENTRY, INVALID_MESSAGE (kind or payload);
        SESSION_CLOSED; WRITE_FAILED; SESSION_CHANGED: the file is gone or does not end where this
        store left it (another writer, or a write that failed half way), so open it again.
        """
        entry = _entry(
            {
                "id": self._new_id(),
                "parent_id": self._leaf,
                "kind": kind,
                "payload": deep_freeze(payload),
                "at": self._clock.now_ms(),
            }
        )
        line = encode_record({name: getattr(entry, name) for name in Entry.__slots__})
        if self._closed:
            raise CourseError("SESSION_CLOSED", f"{self._file} was closed")
        if not self._file.exists() or self._file.stat().st_size != self._size:
            raise CourseError("SESSION_CHANGED", f"{self._file} is not as this store left it")
        _write(self._file, line)
        self._size += len(line)
        self._entries[entry.id] = entry
        self._leaf = entry.id
        return entry.id

    def branch(self, entry_id: str | None) -> None:
        """Make `entry_id` the leaf, or None: the next entry is a root. Code: UNKNOWN_ENTRY.

        No entry changes and nothing is written: a branch is in the file once it has an entry.
        """
        if entry_id is not None:
            self._find(entry_id)
        self._leaf = entry_id

    def path(self, leaf: str | None = None) -> tuple[Entry, ...]:
        """Return the entries from a root down to `leaf` (None: the current leaf). UNKNOWN_ENTRY."""
        steps: list[Entry] = []
        at = self._leaf if leaf is None else leaf
        while at is not None:
            steps.append(self._find(at))
            at = steps[-1].parent_id
        return tuple(reversed(steps))

    def tree(self) -> dict[str | None, tuple[str, ...]]:
        """Return the ids below each entry that has some, in file order; roots are below None."""
        below: dict[str | None, list[str]] = {}
        for entry in self._entries.values():
            below.setdefault(entry.parent_id, []).append(entry.id)
        return {parent: tuple(ids) for parent, ids in below.items()}

    def close(self) -> None:
        """Refuse every later append; to close twice is fine."""
        self._closed = True

    def _find(self, entry_id: str) -> Entry:
        if entry_id not in self._entries:
            raise CourseError("UNKNOWN_ENTRY", f"no entry {entry_id!r} in {self._file}")
        return self._entries[entry_id]

    def _new_id(self) -> str:
        while (name := self._ids.next("entry")) in self._entries:
            pass
        return name


def active_messages(entries: Sequence[Entry]) -> list[Message]:
    """Return the messages recorded along a path, oldest first; other kinds are passed over."""
    return [from_json(entry.payload) for entry in entries if entry.kind == "message"]


def _entry(value: JSONValue) -> Entry:
    match value:
        case {
            "id": str(name),
            "parent_id": None | str() as parent,
            "kind": str(kind),
            "payload": payload,
            "at": int(at),
            **rest,
        } if name and parent != "" and kind and type(at) is int and not rest:
            if kind == "message":
                from_json(payload)
            return Entry(name, parent, kind, payload, at)
    raise CourseError("INVALID_ENTRY", "not the five fields of an entry")


def _refusal(value: JSONValue, kept: dict[str, Entry]) -> str | None:
    """Why `value` is no entry that could follow those kept; if it is one, it is kept too."""
    try:
        entry = _entry(value)
    except CourseError as error:
        return error.code
    if entry.id in kept:
        return "DUPLICATE_ENTRY"
    if entry.parent_id is not None and entry.parent_id not in kept:
        return "UNKNOWN_PARENT"
    kept[entry.id] = entry
    return None


def _is_whole(tail: bytes, kept: dict[str, Entry]) -> bool:
    try:
        return _refusal(parse_json(tail.decode()), kept) is None
    except (CourseError, UnicodeDecodeError):
        return False


def _new_neighbour(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.torn-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def _write(path: Path, data: bytes, *, cut_at: int | None = None) -> None:
    """Add `data` at the end of a file, cut first if asked; it is on the disk when this returns."""
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "ab", buffering=0) as file:
            if cut_at is not None:
                file.truncate(cut_at)
            while data:
                data = data[file.write(data) :]
            os.fsync(handle)
        if is_new and os.name == "posix":  # a new name is on the disk only with its folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise CourseError("WRITE_FAILED", f"cannot write {path}") from error
