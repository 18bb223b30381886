"""Strict JSON: what is odd is an exception of our own, and one place turns it into the code."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator

from pi_course.errors import CourseError
from pi_course.values import JSONValue, deep_freeze

MAX_BYTES = 65_536
MAX_DEPTH = 16


_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class _Odd(Exception):
    """What is wrong with the document, in words without any of it."""


def strict_json(
    data: bytes,
    *,
    code: str = "INVALID_SCHEMA",
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
) -> JSONValue:
    """One pass for each thing that may be wrong, cheapest first."""
    try:
        if len(data) > max_bytes:
            raise _Odd("too many bytes")
        text = _decoded(data)
        if max(_depths(text), default=0) > max_depth:
            raise _Odd("too many levels")
        decoder = json.JSONDecoder(
            object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite
        )
        return _without_surrogates(decoder.decode(text.strip(" \t\r\n")))
    except _Odd as odd:
        raise CourseError(code, str(odd)) from None
    except (ValueError, RecursionError):
        raise CourseError(code, "not JSON") from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _Odd("not UTF-8") from None


def _depths(text: str) -> Iterator[int]:
    brackets = (_STEPS[char] for char in _TEXTS.sub("", text) if char in _STEPS)
    return itertools.accumulate(brackets)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    counted = Counter(key for key, _ in pairs)
    if any(count > 1 for count in counted.values()):
        raise _Odd("a key stands twice")
    return dict(pairs)


def _no_constant(_: str) -> object:
    raise _Odd("a number that JSON does not have")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _Odd("a number that is too large")
    return number


def _without_surrogates(value: object) -> JSONValue:
    try:
        return deep_freeze(value)
    except CourseError:
        raise _Odd("something that JSON cannot write") from None
