"""JSON that came from somebody else: a frozen value, or an error that repeats none of it."""

from __future__ import annotations

from pi_course.values import JSONValue

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
    raise NotImplementedError("实现 Plugin 权限声明校验")
