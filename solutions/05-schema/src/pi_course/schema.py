"""What a tool accepts: a small closed subset of JSON Schema, and arguments held against it.

A schema is written by us or by a plugin and checked once; arguments are written by a model and
checked on every call. Both checks list everything that is wrong, each with a JSON pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from pi_course.errors import CourseError
from pi_course.values import JSONValue, canonical_json, deep_freeze, same_json

MAX_DEPTH = 20
MAX_SCHEMA_BYTES = 65_536
MAX_MESSAGE = 2_000

Permission: TypeAlias = Literal["read", "write", "execute", "network"]

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"),
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "null": (),
}
"""The types and the keywords of each; type (required), description and enum go with every type."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool, and what the tool may touch.

    input_schema is deep-frozen here and checked where the tool is registered.
    """

    name: str
    description: str
    input_schema: Mapping[str, JSONValue]
    permission: Permission

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_schema", deep_freeze(self.input_schema))


def check_schema(schema: object) -> None:
    """Nothing, when `schema` is one that validate_args can hold arguments against.

    Its root has type "object"; every schema in it has a type of KEYWORDS and no keyword that is
    not of that type. properties: name → schema; required: distinct names out of properties;
    additionalProperties: a boolean; items: a schema; enum: at least one value, all of the type;
    minimum and maximum: numbers; the other limits: integers from 0; no minimum above its maximum.
    At most MAX_DEPTH schemas inside each other, MAX_SCHEMA_BYTES of canonical JSON.
    Otherwise CourseError INVALID_SCHEMA with a message as that of validate_args: the pointers are
    those of the keywords (in enum and required: of the items) that are wrong, of a missing type
    the one it would have, of a pair of limits that of the minimum.
    """
    frozen = _frozen(schema, "INVALID_SCHEMA")
    if len(canonical_json(frozen)) > MAX_SCHEMA_BYTES:
        _refuse("INVALID_SCHEMA", [("", f"takes more than {MAX_SCHEMA_BYTES} bytes")])
    _refuse("INVALID_SCHEMA", _schema_errors(frozen, "", 1))


def validate_args(schema: object, args: object) -> JSONValue:
    """A frozen copy of `args`, when they fit `schema`; neither is changed, nothing is coerced.

    True is no integer and no number; 1.0 is a number but no integer; lengths count code points;
    a property that the schema does not name is an error unless additionalProperties is true.
    Otherwise CourseError INVALID_ARGUMENTS. Its message lists every error, one a line, as
    "POINTER: reason" (RFC 6901; of a missing property the pointer it would have); it shows no
    values, cuts long names short, and has at most MAX_MESSAGE characters.
    CourseError INVALID_SCHEMA when the schema is not one of ours.
    """
    check_schema(schema)
    frozen = _frozen(args, "INVALID_ARGUMENTS")
    _refuse("INVALID_ARGUMENTS", _argument_errors(deep_freeze(schema), frozen, ""))
    return frozen


_Errors: TypeAlias = Iterator[tuple[str, str]]

_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, tuple),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _is_count(value: Any) -> bool:
    return _IS["integer"](value) and value >= 0


def _is_names(value: Any) -> bool:
    return _IS["array"](value) and all(map(_IS["string"], value)) and len(set(value)) == len(value)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "type": _IS["string"],
    "description": _IS["string"],
    "enum": lambda value: _IS["array"](value) and len(value) > 0,
    "properties": _IS["object"],
    "required": _is_names,
    "additionalProperties": _IS["boolean"],
    "items": _IS["object"],
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minimum": _IS["number"],
    "maximum": _IS["number"],
}
_LIMITS = (("minItems", "maxItems"), ("minLength", "maxLength"), ("minimum", "maximum"))


def _schema_errors(schema: Any, at: str, depth: int) -> _Errors:
    if depth > MAX_DEPTH:
        yield at, f"more than {MAX_DEPTH} schemas inside each other"
        return
    kinds = tuple(KEYWORDS) if at else ("object",)
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind not in kinds:
        yield _below(at, "type"), f"must be {' or '.join(kinds)}"
        return
    known = ("type", "description", "enum", *KEYWORDS[kind])
    malformed = [word for word in schema if word not in known or not _FITS[word](schema[word])]
    if malformed:
        yield from ((_below(at, word), f"no keyword of {kind}, or no value") for word in malformed)
        return
    for index, value in enumerate(schema.get("enum", ())):
        if not _IS[kind](value):
            yield _below(at, "enum", index), f"is no {kind}"
    for low, high in _LIMITS:
        if low in schema and high in schema and schema[low] > schema[high]:
            yield _below(at, low), f"is above {high}"
    properties = schema.get("properties", {})
    for index, name in enumerate(schema.get("required", ())):
        if name not in properties:
            yield _below(at, "required", index), "names no property"
    for name, child in properties.items():
        yield from _schema_errors(child, _below(at, "properties", name), depth + 1)
    if "items" in schema:
        yield from _schema_errors(schema["items"], _below(at, "items"), depth + 1)


def _argument_errors(schema: Any, value: Any, at: str) -> _Errors:
    kind = schema["type"]
    if not _IS[kind](value):
        got = next(name for name, holds in _IS.items() if holds(value))
        yield at, f"expected {kind}, got {got}"
        return
    if "enum" in schema and not any(same_json(value, one) for one in schema["enum"]):
        yield at, "is not in enum"
    amount = len(value) if isinstance(value, str | tuple) else value
    for low, high in _LIMITS:
        if low in schema and amount < schema[low]:
            yield at, f"{low} is {schema[low]}"
        if high in schema and amount > schema[high]:
            yield at, f"{high} is {schema[high]}"
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield _below(at, name), "is required"
        for name, item in value.items():
            if name in properties:
                yield from _argument_errors(properties[name], item, _below(at, name))
            elif not schema.get("additionalProperties", False):
                yield _below(at, name), "is not a known property"
    elif isinstance(value, tuple) and "items" in schema:
        for index, item in enumerate(value):
            yield from _argument_errors(schema["items"], item, _below(at, index))


def _below(at: str, *steps: str | int) -> str:
    """The JSON pointer some steps below `at`; a long or unprintable name is cut or replaced."""
    for step in steps:
        name = "".join(c if c.isprintable() else "?" for c in _cut(str(step), 60))
        at += "/" + name.replace("~", "~0").replace("/", "~1")
    return at


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _frozen(value: object, code: str) -> JSONValue:
    try:
        return deep_freeze(value)
    except CourseError as problem:
        raise CourseError(code, f": {problem.code}") from problem


def _refuse(code: str, errors: Iterable[tuple[str, str]]) -> None:
    lines = [f"{at}: {reason}" for at, reason in islice(errors, 100)]
    if lines:
        raise CourseError(code, _cut("\n".join(lines), MAX_MESSAGE))
