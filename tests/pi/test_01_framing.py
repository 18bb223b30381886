"""Chapter 01: bytes cut anywhere, and the same lines, events and records come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pi_course.errors import CourseError
from pi_course.framing import LineDecoder, encode_record, parse_sse, read_jsonl
from pi_course.values import canonical_json

from tests.pi.arbitrary import cut_at, cut_into_two, examples, json_values, outcome, texts

Seen = tuple[list[Any], "str | None"]

# Everything that some other splitter takes for the end of a line, and halves of characters.
SEPARATORS = ["\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1e", "\r", "\r\r", "\0"]
bits = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b"a", "你".encode(), "\U0001f642".encode(), b"\xe4", b"\xff", b"\x85"]
    + [separator.encode() for separator in SEPARATORS]
)
byte_texts = st.lists(bits, max_size=16).map(b"".join)
places = st.lists(st.integers(0, 200), max_size=6)


def decoded(chunks: Iterable[bytes]) -> Seen:
    """The lines of a decoder that is fed and closed, and the code that ended it."""
    decoder, lines = LineDecoder(), list[str]()
    try:
        for chunk in chunks:
            lines += decoder.feed(chunk)
        lines += decoder.close()
        lines += decoder.feed(b"")
    except CourseError as error:
        for later in (decoder.close, lambda: decoder.feed(b"more\n")):
            assert outcome(later) == error.code
        return lines, error.code
    return lines, None


def expected_lines(data: bytes) -> Seen:
    """What one split and one decode a line make of the same bytes."""
    *complete, rest = data.split(b"\n")
    lines: list[str] = []
    for raw in [line.removesuffix(b"\r") for line in complete] + ([rest] if rest else []):
        try:
            lines.append(raw.decode())
        except UnicodeDecodeError:
            return lines, "BAD_UTF8"
    return lines, None


def every_chunking(data: bytes) -> Iterator[list[bytes]]:
    """All 2 ** (n - 1) ways to cut n bytes into pieces."""
    for cuts in product([False, True], repeat=len(data) - 1):
        yield cut_at(data, [place for place, cut in enumerate(cuts, start=1) if cut])


def test_every_chunking_of_a_nasty_text_gives_the_same_lines() -> None:
    """All 2,048 ways to cut CRLF, a character of four bytes, and a lone CR at the end."""
    data = "é\r\n\U0001f642\r\r\n".encode() + b"\r"
    assert decoded([data]) == (["é", "\U0001f642\r", "\r"], None)
    assert all(decoded(chunks) == decoded([data]) for chunks in every_chunking(data))


@examples(120)
@given(byte_texts, places)
def test_any_bytes_cut_anywhere_are_the_lines_of_one_split(data: bytes, at: list[int]) -> None:
    """Lines, and the place where they stop being UTF-8, depend on the bytes alone."""
    for chunks in (cut_at(data, at), [data[i : i + 1] for i in range(len(data))], [data]):
        assert decoded(chunks) == expected_lines(data)


@examples(60)
@given(st.lists(st.sampled_from(SEPARATORS) | texts, max_size=6).map("".join), places)
def test_only_the_newline_ends_a_line(text: str, at: list[int]) -> None:
    """U+2028, VT, FF, NEL, a CR inside: all of them are text, in lines, events and records."""
    text = text.replace("\n", "") + "."
    assert decoded(cut_at(f"{text}\nx".encode(), at)) == ([text, "x"], None)
    framed = f"data: {text}\n\n".encode()
    assert [event.data for event in parse_sse(cut_at(framed, at))] == [text]
    record = encode_record([text])
    assert (record.count(b"\n"), record[-1:]) == (1, b"\n")


sse_lines = st.sampled_from([
    "data: one", "data:two", "data", "data:  三", "event: 名", "event:", "id: 7", "id", ": comment",
    "retry: 5", "other: x", "data: [DONE]", "", "", "", "data:\u2028", "\ufeffdata: x", "event: a",
])  # fmt: skip


def events_of(chunks: Iterable[bytes]) -> Seen:
    """The events that a stream gives, and the code that ended it."""
    events: list[Any] = []
    try:
        for event in parse_sse(chunks):
            events.append((event.event, event.data, event.id))
    except CourseError as error:
        return events, error.code
    return events, None


@examples(100)
@given(
    st.lists(sse_lines.map(str.encode) | bits, max_size=10),
    st.sampled_from([b"\n", b"\r\n"]),
    places,
)
def test_server_sent_events_are_the_same_however_the_stream_is_cut(
    lines: list[bytes], ending: bytes, at: list[int]
) -> None:
    """Good lines and bad ones, cut in two at every byte: the same events, then the same code."""
    data = b"".join(line + ending for line in lines)
    whole = events_of([data])
    assert events_of(cut_at(data, at)) == whole
    for chunks in cut_into_two(data):
        assert events_of(chunks) == whole


one_line = texts.map(lambda text: text.replace("\n", " ").replace("\r", " "))
sent = st.tuples(one_line, st.lists(one_line, min_size=1, max_size=3), st.none() | one_line)


@examples(100)
@given(st.lists(sent, max_size=4), places, st.integers(0, 500))
def test_events_come_back_as_sent_and_a_cut_one_never_comes(
    events: list[tuple[str, list[str], str | None]], at: list[int], end: int
) -> None:
    """What was sent is received; a stream that ends early gives the events that were whole."""
    data, wanted, ends, last_id = b"", [], [0], ""
    for name, said, given_id in events:
        last_id = last_id if given_id is None else given_id
        fields = [f"event: {name}", *(f"data: {line}" for line in said), ": ping"]
        fields += [] if given_id is None else [f"id: {given_id}"]
        data += "\n".join([*fields, "", ""]).encode()
        wanted.append((name or "message", "\n".join(said), last_id))
        ends.append(len(data))
    assert events_of(cut_at(data, at)) == (wanted, None)
    end %= len(data) + 1
    whole = sum(place <= end for place in ends) - 1
    assert events_of(cut_at(data[:end], at)) == (wanted[:whole], None)


rows = json_values.map(canonical_json) | st.lists(bits, max_size=3).map(b"".join)


@examples(100)
@given(st.lists(rows, max_size=6), rows)
def test_records_and_the_tail_tile_the_file(lines: list[bytes], tail: bytes) -> None:
    """Every byte of any file is in one record or in the tail, and the numbers count the lines."""
    data = b"".join(line + b"\n" for line in lines) + tail
    with TemporaryDirectory() as folder:
        path = Path(folder, "s.jsonl")
        path.write_bytes(data)
        records, rest = read_jsonl(path)
    assert b"".join(data[record.start : record.end] for record in records) + rest.data == data
    ends = [0, *(record.end for record in records)]
    assert [record.start for record in records] + [rest.start] == ends
    assert [record.line for record in records] == list(range(1, data.count(b"\n") + 1))
    assert b"\n" not in rest.data
    for record in records:
        line = data[record.start : record.end]
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        assert record.error in (None, "NOT_JSON", "BAD_UTF8")
        assert record.error is None or record.value is None


@examples(60)
@given(st.lists(json_values, max_size=5), st.integers(0, 999))
def test_records_are_read_as_written_and_a_torn_one_is_the_tail(
    values: list[Any], cut: int
) -> None:
    """Whole records come back in order wherever the file ends; the rest of it is the tail."""
    lines = [encode_record(value) for value in values]
    data = b"".join(lines)
    data = data[: cut % (len(data) + 1)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "s.jsonl")
        path.write_bytes(data)
        records, rest = read_jsonl(path)
    whole = lines[: sum(end <= len(data) for end in accumulate(map(len, lines)))]
    assert [encode_record(record.value) for record in records] == whole
    assert all(record.error is None for record in records)
    assert b"".join(whole) + rest.data == data
