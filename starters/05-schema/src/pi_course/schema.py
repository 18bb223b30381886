"""What a tool accepts: a small closed subset of JSON Schema, and arguments held against it.

A schema is written by us or by a plugin and checked once; arguments are written by a model and
checked on every call. Both checks list everything that is wrong, each with a JSON pointer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.values import JSONValue, deep_freeze

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
    raise NotImplementedError("Lab 05.1 schema check 尚未实现")


def validate_args(schema: object, args: object) -> JSONValue:
    """A frozen copy of `args`, when they fit `schema`; neither is changed, nothing is coerced.

    True is no integer and no number; 1.0 is a number but no integer; lengths count code points;
    a property that the schema does not name is an error unless additionalProperties is true.
    Otherwise CourseError INVALID_ARGUMENTS. Its message lists every error, one a line, as
    "POINTER: reason" (RFC 6901; of a missing property the pointer it would have); it shows no
    values, cuts long names short, and has at most MAX_MESSAGE characters.
    CourseError INVALID_SCHEMA when the schema is not one of ours.
    """
    raise NotImplementedError("Lab 05.2 argument validation 尚未实现")
