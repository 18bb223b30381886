"""Lab 01.1: bytes to lines, lines to server-sent events."""

from __future__ import annotations

import random

import pytest
from pi_course import framing
from pi_course.errors import CourseError


def _pieces(data, rng):
    """Cut data at random places; pieces may be empty."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(12)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _lines(pieces):
    """All lines that a decoder returns for the pieces, and the code of its error, if any."""
    decoder, lines = framing.LineDecoder(), []
    try:
        for piece in pieces:
            lines += decoder.feed(piece)
        return lines + decoder.close(), None
    except CourseError as error:
        return lines, error.code


def test_lines_do_not_depend_on_how_the_bytes_were_cut():
    """Whatever the pieces, byte by byte too, the lines are those of the whole."""
    data = "数据 one\r\n\n😀\ufeff two\n".encode() * 3 + "é".encode()
    whole = (["数据 one", "", "😀\ufeff two"] * 3 + ["é"], None)

    assert _lines([data]) == whole
    assert _lines([data[i : i + 1] for i in range(len(data))]) == whole
    seed = 10
    rng = random.Random(seed)
    for round_ in range(200):
        assert _lines(_pieces(data, rng)) == whole, f"seed {seed}, round {round_}"


def test_only_a_newline_ends_a_line():
    """The nine other characters that str.splitlines would cut at stay inside the line."""
    line = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj"
    assert _lines([f"{line}\nnext\n".encode()]) == ([line, "next"], None)


def test_one_carriage_return_belongs_to_the_line_ending():
    """Exactly one \\r right before the newline goes; every other blank and \\r is text."""
    data = b"\ta \r\nb\r\r\n\r\n\n \nlast\r"
    assert _lines([data]) == (["\ta ", "b\r", "", "", " ", "last\r"], None)


def test_close_returns_what_was_left_once():
    """Text without a newline comes out at close, and half a character there is BAD_UTF8."""
    decoder = framing.LineDecoder()
    assert decoder.feed(b"done\nunfin") == ["done"]
    assert decoder.feed(b"ished") == []
    assert decoder.close() == ["unfinished"]
    assert decoder.close() == []

    half = framing.LineDecoder()
    assert half.feed("ok\né".encode()[:-1]) == ["ok"]
    with pytest.raises(CourseError) as caught:
        half.close()
    assert caught.value.code == "BAD_UTF8"


def test_a_bad_line_costs_neither_the_lines_before_it_nor_the_error():
    """Before a line that is not UTF-8 every line is returned, after it none, however cut."""
    data = b"one\ntwo\nbad \xff\xfe\nthree\n"
    seed = 11
    rng = random.Random(seed)
    for round_ in range(50):
        outcome = _lines(_pieces(data, rng))
        assert outcome == (["one", "two"], "BAD_UTF8"), f"seed {seed}, round {round_}"


def test_an_event_is_made_of_its_fields():
    """Data lines join, comments vanish, a name is for one event, an id lasts, data is any text."""
    stream = (
        b"\xef\xbb\xbfid: 7\nevent: delta\ndata: first\n: data: no\ndata:  second\n\n"
        b": keep-alive\n\n"
        b"data\ndata:third:3\nretry: 10\n\n"
        b"event: nothing\n\n"
        b"data: [DONE]\r\n\r\n"
    )
    assert list(framing.parse_sse([stream])) == [
        framing.SSEvent("delta", "first\n second", "7"),
        framing.SSEvent("message", "\nthird:3", "7"),
        framing.SSEvent("message", "[DONE]", "7"),
    ]


def test_an_event_arrives_with_its_blank_line_and_not_later():
    """Reading an event takes no chunk from the connection beyond the one that completes it."""
    taken = []

    def connection():
        for number, chunk in enumerate([b"data: 1", b"\n\nda", b"ta: 2\n\n", b"data: 3\n\n"]):
            taken.append(number)
            yield chunk

    events = framing.parse_sse(connection())
    assert next(events).data == "1"
    assert taken == [0, 1]
    assert next(events).data == "2"
    assert taken == [0, 1, 2]


def test_a_cut_stream_gives_whole_events_only():
    """Cut at any byte, in the middle of a character too, a stream gives the events it finished."""
    first, second = "data: é\ndata: 数\n\n".encode(), "event: end\ndata: 😀\n\n".encode()
    whole = [framing.SSEvent("message", "é\n数", ""), framing.SSEvent("end", "😀", "")]
    stream = first + second
    for cut in range(len(stream) + 1):
        finished = (cut >= len(first)) + (cut == len(stream))
        chunks = [stream[i : min(i + 3, cut)] for i in range(0, cut, 3)]
        assert list(framing.parse_sse(chunks)) == whole[:finished], f"cut at byte {cut}"
