"""Bytes to lines, lines to events and records: nothing counts before its end has been seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pi_course.values import JSONValue


@dataclass(frozen=True, slots=True)
class SSEvent:
    """One server-sent event; id is the last id the stream has named so far."""

    event: str
    data: str
    id: str


@dataclass(frozen=True, slots=True)
class Record:
    """One complete line of a file, numbered from 1; bytes start up to end hold it with its newline.

    error is the code NOT_JSON or BAD_UTF8, and value is then None; a good line may be null too.
    """

    line: int
    start: int
    end: int
    value: JSONValue
    error: str | None


@dataclass(frozen=True, slots=True)
class Tail:
    """The bytes from start to the end of the file: what follows the last newline, often b""."""

    start: int
    data: bytes


class LineDecoder:
    """Bytes in, in pieces of any size; UTF-8 lines out, the same ones however the bytes were cut.

    Only the newline byte ends a line; one carriage return before it is part of the ending.
    The first line that is not UTF-8 is the last: every line before it is still returned, then
    every call raises BAD_UTF8.
    """

    def __init__(self) -> None:
        raise NotImplementedError("Lab 01.1 line decoder 尚未实现")

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that data completes, without their endings. Code: BAD_UTF8."""
        raise NotImplementedError("Lab 01.1 line decoder 尚未实现")

    def close(self) -> list[str]:
        """Return what was left without a newline, as one line, or nothing. Code: BAD_UTF8."""
        raise NotImplementedError("Lab 01.1 line decoder 尚未实现")


def parse_sse(chunks: Iterable[bytes]) -> Iterator[SSEvent]:
    """Yield each server-sent event as soon as the blank line that ends it has arrived.

    Lines of data are joined with a newline; a line that starts with a colon is a comment; the
    name is "message" unless this event names itself; an event without data is none; unknown
    fields are skipped; one byte order mark at the start of the stream too. Data is passed on as it
    is ("[DONE]" too). An event that the end of the stream cuts off, be it inside a character, is
    dropped. Code: BAD_UTF8 for a complete line, after the events before it.
    """
    raise NotImplementedError("Lab 01.1 line decoder 尚未实现")


def encode_record(value: object) -> bytes:
    """Return value as one line of a JSONL file. Codes: NOT_JSON, CYCLIC."""
    raise NotImplementedError("Lab 01.2 JSONL records 尚未实现")


def read_jsonl(path: Path) -> tuple[list[Record], Tail]:
    """Return the complete lines of a file in order, and the tail after the last of them.

    Every byte of the file is in exactly one record or in the tail. A line that is not JSON is a
    record with an error; a tail is never a record, even when it would be JSON.
    """
    raise NotImplementedError("Lab 01.2 JSONL records 尚未实现")
