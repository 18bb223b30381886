"""Faults of chapter 01: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import json
from dataclasses import replace

from pi_course import framing
from pi_course.errors import CourseError


def decode_each_chunk(feed):
    """Decode every chunk by itself and put a replacement where half a character was."""

    def faulty(self, data):
        return feed(self, data.decode("utf-8", "replace").encode())

    return faulty


def splitlines_of_str(feed):
    """Cut lines with str.splitlines, which knows nine more separators."""

    def faulty(self, data):
        return [part for line in feed(self, data) for part in line.splitlines() or [""]]

    return faulty


def strip_the_line(feed):
    """Strip all white space from the end of a line instead of one carriage return."""

    def faulty(self, data):
        return [line.rstrip() for line in feed(self, data)]

    return faulty


def drop_empty_lines(feed):
    """Leave out empty lines, as nobody seems to need them."""

    def faulty(self, data):
        return [line for line in feed(self, data) if line]

    return faulty


def close_forgets(close):
    """Drop what was left without a newline."""

    def faulty(self):
        close(self)
        return []

    return faulty


def half_character_replaced(close):
    """Return a replacement character for half a character instead of refusing it."""

    def faulty(self):
        try:
            return close(self)
        except CourseError:
            return ["\N{REPLACEMENT CHARACTER}"]

    return faulty


def guess_latin_1(feed):
    """Take a chunk that is not UTF-8 for Latin-1."""

    def faulty(self, data):
        try:
            return feed(self, data)
        except CourseError:
            return data.decode("latin-1").split("\n")[:-1]

    return faulty


def data_lines_glued(parse_sse):
    """Join the data lines of an event with nothing between them."""

    def faulty(chunks):
        return (replace(event, data=event.data.replace("\n", "")) for event in parse_sse(chunks))

    return faulty


def event_name_sticks(parse_sse):
    """Let the name of an event last for the events after it."""

    def faulty(chunks):
        name = "message"
        for event in parse_sse(chunks):
            name = name if event.event == "message" else event.event
            yield replace(event, event=name)

    return faulty


def read_it_all_first(parse_sse):
    """Wait for the end of the connection before looking at its first event."""

    def faulty(chunks):
        return parse_sse([b"".join(chunks)])

    return faulty


def end_completes_the_event(parse_sse):
    """Take the end of the stream for the blank line that an event still lacks."""

    def faulty(chunks):
        yield from parse_sse([*chunks, b"\n\n"])

    return faulty


def readable_newlines(encode_record):
    """Write newlines inside text as they are, which is easier to read."""

    def faulty(value):
        return encode_record(value).replace(b"\\n", b"\n")

    return faulty


def lenient_writer(encode_record):
    """Write with json.dumps and its defaults."""

    def faulty(value):
        try:
            return encode_record(value)
        except CourseError as error:
            if error.code == "CYCLIC":
                raise
            return json.dumps(value).encode() + b"\n"

    return faulty


def offsets_in_characters(read_jsonl):
    """Count characters where bytes are meant."""

    def faulty(path):
        data = path.read_bytes()

        def place(offset):
            return len(data[:offset].decode("utf-8", "replace"))

        records, tail = read_jsonl(path)
        records = [replace(r, start=place(r.start), end=place(r.end)) for r in records]
        return records, replace(tail, start=place(tail.start))

    return faulty


def tail_counts(read_jsonl):
    """Take the tail for a record when it happens to be JSON."""

    def faulty(path):
        records, tail = read_jsonl(path)
        try:
            value = json.loads(tail.data)
        except ValueError:
            return records, tail
        end = tail.start + len(tail.data)
        last = framing.Record(len(records) + 1, tail.start, end, value, None)
        return [*records, last], framing.Tail(end, b"")

    return faulty


def skip_bad_lines(read_jsonl):
    """Leave out the lines that cannot be read, without a word."""

    def faulty(path):
        records, tail = read_jsonl(path)
        return [record for record in records if record.error is None], tail

    return faulty


def stop_at_bad_line(read_jsonl):
    """Stop reading at the first line that cannot be read."""

    def faulty(path):
        records, tail = read_jsonl(path)
        bad = [n for n, record in enumerate(records) if record.error is not None]
        return records[: bad[0] + 1] if bad else records, tail

    return faulty


def null_is_an_error(read_jsonl):
    """Take a value of None for a line that could not be read."""

    def faulty(path):
        records, tail = read_jsonl(path)
        return [
            r if r.value is not None or r.error else replace(r, error="NOT_JSON") for r in records
        ], tail

    return faulty
