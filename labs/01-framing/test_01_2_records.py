"""Lab 01.2: a file of JSON lines, read so that every byte is accounted for."""

from __future__ import annotations

import random

import pytest
from pi_course import framing
from pi_course.errors import CourseError


def test_a_record_is_one_line_whatever_its_text(tmp_path):
    """What encode_record takes is one line that reads back as it was; the rest it refuses."""
    seed = 12
    rng = random.Random(seed)
    letters = 'ab\n\r\x0b\x85\u2028\u2029"\\数😀'
    written = [{"text": "".join(rng.choice(letters) for _ in range(9)), "n": n} for n in range(100)]
    lines = [framing.encode_record(value) for value in written]
    for line in lines:
        assert line.endswith(b"\n"), f"seed {seed}"
        assert line.count(b"\n") == 1, f"seed {seed}"
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))

    records, tail = framing.read_jsonl(path)
    assert [record.value for record in records] == written, f"seed {seed}"
    assert [record.error for record in records] == [None] * 100
    assert tail.data == b""

    ring: list[object] = []
    ring.append(ring)
    for value, code in (({"x": float("nan")}, "NOT_JSON"), ({1: 2}, "NOT_JSON"), (ring, "CYCLIC")):
        with pytest.raises(CourseError) as caught:
            framing.encode_record(value)
        assert caught.value.code == code


def test_every_byte_is_in_one_record_or_in_the_tail(tmp_path):
    """Records and tail lie end to end in bytes, not characters, from 0 to the size of the file."""
    data = '{"a":"数据"}\n\n[1, 2]\r\nnonsense\n"😀"\n{"b":'.encode()
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)

    records, tail = framing.read_jsonl(path)
    assert [record.line for record in records] == [1, 2, 3, 4, 5]
    starts = [0, *(record.end for record in records)]
    assert [*(record.start for record in records), tail.start] == starts
    assert data[records[2].start : records[2].end] == b"[1, 2]\r\n"
    assert data[records[4].start : records[4].end] == '"😀"\n'.encode()
    assert tail.data == data[tail.start :] == b'{"b":'


def test_a_line_without_its_newline_is_never_a_record(tmp_path):
    """A file cut at any byte gives its finished lines; the rest is the tail, be it JSON or not."""
    lines = [b"1\n", '{"a":"é"}\n'.encode(), b"[2,3]\n", b"4567\n"]
    data = b"".join(lines)
    path = tmp_path / "log.jsonl"
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        records, tail = framing.read_jsonl(path)
        finished = data[:cut].count(b"\n")
        values = [1, {"a": "é"}, (2, 3), 4567][:finished]
        assert [record.value for record in records] == values, f"cut at byte {cut}"
        start = len(b"".join(lines[:finished]))
        assert tail == framing.Tail(start, data[start:cut]), f"cut at byte {cut}"


def test_a_bad_line_is_reported_where_it_stands(tmp_path):
    """Whatever is wrong with a line, its neighbours are read and it says NOT_JSON or BAD_UTF8."""
    bad = {
        b"{oops": "NOT_JSON",
        b"": "NOT_JSON",
        b"\x00" * 40: "NOT_JSON",
        b"[NaN]": "NOT_JSON",
        b'{"k":1,"k":2}': "NOT_JSON",
        b"[" * 100_000: "NOT_JSON",
        b'{"a":"\xff"}': "BAD_UTF8",
    }
    path = tmp_path / "log.jsonl"
    for line, code in bad.items():
        path.write_bytes(b"null\n" + line + b"\n" + b'{"after":true}\n')
        records, tail = framing.read_jsonl(path)
        assert [record.line for record in records] == [1, 2, 3]
        assert [record.value for record in records] == [None, None, {"after": True}]
        assert [record.error for record in records] == [None, code, None], line[:20]
        assert tail.data == b""
