"""JSON that came from somebody else: a frozen value, or an error that repeats none of it."""

from __future__ import annotations

import json

from pi_course.errors import CourseError
from pi_course.values import JSONValue, deep_freeze

MAX_BYTES = 65_536
MAX_DEPTH = 16


def strict_json(
    data: bytes,
    *,
    code: str = "INVALID_SCHEMA",
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
) -> JSONValue:
    """Return the frozen value of the one JSON document in `data`.

    CourseError `code` for what json.loads would let pass or stumble over: more than `max_bytes`
    bytes (nothing is parsed then), bytes that are not UTF-8, a byte order mark, objects and
    arrays nested deeper than `max_depth`, the same key twice in one object, NaN and Infinity,
    a number too large for a float, half of a surrogate pair. The message says what and where in
    numbers; no piece of the document is ever in it.
    """
    if len(data) > max_bytes:
        raise CourseError(code, f"more than {max_bytes} bytes")
    try:
        text = data.decode("utf-8")
        if _is_deeper(text, max_depth):
            raise ValueError(f"nested deeper than {max_depth}")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
        return deep_freeze(value)
    except UnicodeDecodeError as error:
        raise CourseError(code, f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise CourseError(code, f"not JSON at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise CourseError(code, str(error)) from None
    except CourseError:
        raise CourseError(code, "holds a value that JSON cannot write") from None


def _is_deeper(text: str, limit: int) -> bool:
    """Whether brackets outside strings open more than `limit` levels; no recursion, one pass."""
    depth, in_string, escaped = 0, False, False
    for char in text:
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            if depth > limit:
                return True
        elif char in "]}":
            depth -= 1
    return False


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _refuse_constant(_name: str) -> object:
    raise ValueError("NaN and Infinity are not JSON")
