"""JSON values that nobody can change, compared and written in one way only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

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
    raise NotImplementedError("Lab 00.1 frozen values 尚未实现")


def thaw(value: object) -> Any:
    """Return plain dicts and lists that share nothing with value and are the caller's to change."""
    raise NotImplementedError("Lab 00.1 frozen values 尚未实现")


def canonical_json(value: object) -> bytes:
    """Return the one way to write value: UTF-8, keys in code point order, no spaces, no newline.

    Codes: those of deep_freeze.
    """
    raise NotImplementedError("Lab 00.2 canonical JSON and bench 尚未实现")


def same_json(left: object, right: object) -> bool:
    """Return whether both are written with the same canonical bytes.

    So lists equal tuples and key order means nothing, but True is not 1, and 1 is not 1.0.
    Codes: those of deep_freeze.
    """
    raise NotImplementedError("Lab 00.2 canonical JSON and bench 尚未实现")


def parse_json(text: str) -> JSONValue:
    """Return the frozen value that text spells: the way back from canonical_json.

    Code: NOT_JSON for what json.loads refuses, and for four things that it lets pass: NaN and
    Infinity, a key twice in one object, a lone surrogate escape, nesting beyond MAX_DEPTH.
    """
    raise NotImplementedError("Lab 00.2 canonical JSON and bench 尚未实现")
