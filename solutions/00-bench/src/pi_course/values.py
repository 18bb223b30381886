"""JSON values that nobody can change, compared and written in one way only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

from pi_course.errors import CourseError

JSONValue: TypeAlias = (
    "bool | int | float | str | tuple[JSONValue, ...] | Mapping[str, JSONValue] | None"
)

MAX_DEPTH = 128
"""Containers inside containers that a value may have; deeper is NOT_JSON."""
MAX_DIGITS = 4_300
"""Digits that an int may have, as many as Python reads and writes; a longer one is NOT_JSON."""


class FrozenDict(dict[str, JSONValue]):
    """A dict that refuses every change with TypeError; deep_freeze makes them.

    Being a dict, it is equal to plain dicts and json.dumps takes it. A MappingProxyType is
    only a view: json, copy.deepcopy and pickle refuse it, and its owner can still change it.
    It guards against accidents, not against somebody who calls dict.__setitem__ on it.
    """

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a FrozenDict cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    setdefault = update = pop = popitem = clear = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, JSONValue]]]:
        return FrozenDict, (dict(self),)


def deep_freeze(value: object) -> JSONValue:
    """Return a copy that cannot be changed: dict → FrozenDict, list and tuple → tuple.

    Scalars are None, bool, int, finite float and str, by exact type.
    Codes: NOT_JSON for anything else (NaN, infinities, ints beyond MAX_DIGITS, keys that are not
    str, text with a lone surrogate, other types, nesting beyond MAX_DEPTH); CYCLIC for a container
    inside itself.
    The same container in two places is no cycle.
    """
    return _freeze(value, "$", frozenset())


def thaw(value: object) -> Any:
    """Return plain dicts and lists that share nothing with value and are the caller's to change."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def canonical_json(value: object) -> bytes:
    """Return the one way to write value: UTF-8, keys in code point order, no spaces, no newline.

    Codes: those of deep_freeze.
    """
    frozen = deep_freeze(value)
    text = json.dumps(frozen, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def same_json(left: object, right: object) -> bool:
    """Return whether both are written with the same canonical bytes.

    So lists equal tuples and key order means nothing, but True is not 1, and 1 is not 1.0.
    Codes: those of deep_freeze.
    """
    return canonical_json(left) == canonical_json(right)


def parse_json(text: str) -> JSONValue:
    """Return the frozen value that text spells: the way back from canonical_json.

    Code: NOT_JSON for what json.loads refuses, and for four things that it lets pass: NaN and
    Infinity, a key twice in one object, a lone surrogate escape, nesting beyond MAX_DEPTH.
    """
    try:
        return deep_freeze(json.loads(text, object_pairs_hook=_object))
    except (ValueError, RecursionError) as error:
        raise CourseError("NOT_JSON", str(error)) from error


_TOO_LONG = 10**MAX_DIGITS


def _freeze(value: object, at: str, inside: frozenset[int]) -> JSONValue:
    if not isinstance(value, (dict, list, tuple)):
        return _scalar(value, at)
    if id(value) in inside:
        raise CourseError("CYCLIC", f"{at} contains itself")
    if len(inside) == MAX_DEPTH:
        raise CourseError("NOT_JSON", f"{at} is nested deeper than {MAX_DEPTH}")
    inside |= {id(value)}
    if isinstance(value, dict):
        return FrozenDict(
            {_key(key, at): _freeze(item, f"{at}.{key}", inside) for key, item in value.items()}
        )
    return tuple(_freeze(item, f"{at}[{i}]", inside) for i, item in enumerate(value))


def _scalar(value: object, at: str) -> JSONValue:
    if value is None or type(value) is bool:
        return value
    if type(value) is int and abs(value) < _TOO_LONG:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is str and not any("\ud800" <= char <= "\udfff" for char in value):
        return value
    raise CourseError("NOT_JSON", f"{at} is a {type(value).__name__} that JSON cannot write")


def _key(key: object, at: str) -> str:
    if not isinstance(key, str):
        raise CourseError("NOT_JSON", f"{at} has a key that is a {type(key).__name__}")
    _scalar(key, at)
    return key


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise CourseError("NOT_JSON", "an object has the same key twice")
    return found
