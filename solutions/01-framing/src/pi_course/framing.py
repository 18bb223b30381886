"""Bytes to lines, lines to events and records: nothing counts before its end has been seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pi_course.errors import CourseError
from pi_course.values import JSONValue, canonical_json, parse_json


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
        self._pieces: list[bytes] = []
        self._bad: CourseError | None = None

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that data completes, without their endings. Code: BAD_UTF8."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._pieces, complete[0]])
            self._pieces = []
        self._pieces.append(rest)
        return self._decode([line.removesuffix(b"\r") for line in complete])

    def close(self) -> list[str]:
        """Return what was left without a newline, as one line, or nothing. Code: BAD_UTF8."""
        rest = b"".join(self._pieces)
        self._pieces = []
        return self._decode([rest] if rest else [])

    def _decode(self, lines: list[bytes]) -> list[str]:
        texts: list[str] = []
        for line in lines if self._bad is None else []:
            try:
                texts.append(_text(line))
            except CourseError as error:
                self._bad = error
                break
        if self._bad is not None and not texts:
            raise self._bad
        return texts


def parse_sse(chunks: Iterable[bytes]) -> Iterator[SSEvent]:
    """Yield each server-sent event as soon as the blank line that ends it has arrived.

    Lines of data are joined with a newline; a line that starts with a colon is a comment; the
    name is "message" unless this event names itself; an event without data is none; unknown
    fields are skipped; one byte order mark at the start of the stream too. Data is passed on as it
    is ("[DONE]" too). An event that the end of the stream cuts off, be it inside a character, is
    dropped. Code: BAD_UTF8 for a complete line, after the events before it.
    """
    name, last_id = "", ""
    data: list[str] = []
    for line in _lines(chunks):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield SSEvent(name or "message", "\n".join(data), last_id)
            name, data = "", []
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            last_id = value


def encode_record(value: object) -> bytes:
    """Return value as one line of a JSONL file. Codes: NOT_JSON, CYCLIC."""
    return canonical_json(value) + b"\n"


def read_jsonl(path: Path) -> tuple[list[Record], Tail]:
    """Return the complete lines of a file in order, and the tail after the last of them.

    Every byte of the file is in exactly one record or in the tail. A line that is not JSON is a
    record with an error; a tail is never a record, even when it would be JSON.
    """
    records: list[Record] = []
    start = 0
    *complete, rest = path.read_bytes().split(b"\n")
    for number, line in enumerate(complete, start=1):
        end = start + len(line) + 1
        try:
            records.append(Record(number, start, end, parse_json(_text(line)), None))
        except CourseError as error:
            records.append(Record(number, start, end, None, error.code))
        start = end
    return records, Tail(start, rest)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder, bom = LineDecoder(), "\ufeff"
    for chunk in chunks:
        for line in decoder.feed(chunk):
            yield line.removeprefix(bom)
            bom = ""
    decoder.feed(b"")  # raises when the last chunk held good lines and then a bad one


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CourseError("BAD_UTF8", str(error)) from error
