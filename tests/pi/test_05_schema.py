"""Chapter 05: schemas and arguments made for each other, and then spoilt in one place."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from pi_course.errors import CourseError
from pi_course.schema import MAX_MESSAGE, ToolSpec, check_schema, validate_args
from pi_course.values import canonical_json, deep_freeze, same_json

from tests.pi.arbitrary import examples, json_values, outcome

names = st.sampled_from(["a", "b", "名", "a/b", "~", "~1", "", " ", "0", "$ref"])
Place = tuple[list["str | int"], str]
Pair = tuple[dict[str, Any], Any, list[Place]]

WRONG: dict[str, list[tuple[Any, str]]] = {
    "object": [([], "array"), (None, "null"), ("{}", "string")],
    "array": [({}, "object"), ("", "string"), (None, "null")],
    "string": [(1, "integer"), (None, "null"), (["x"], "array")],
    "integer": [(True, "boolean"), (False, "boolean"), (1.0, "number"), ("1", "string")],
    "number": [(True, "boolean"), ("1.5", "string"), (None, "null")],
    "boolean": [(1, "integer"), (0, "integer"), ("true", "string"), (None, "null")],
    "null": [(False, "boolean"), (0, "integer"), ("null", "string"), ({}, "object")],
}


@st.composite
def leaves(draw: st.DrawFn) -> Pair:
    """A schema without schemas in it, and a value that fits."""
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "null"]))
    schema: dict[str, Any] = {"type": kind}
    value: Any = None
    if kind == "string":
        value = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
        limits = {"minLength": len(value), "maxLength": len(value) + draw(st.integers(0, 2))}
    elif kind in ("integer", "number"):
        whole = st.integers(-99, 99)
        value = draw(whole if kind == "integer" else whole | st.floats(-9, 9))
        limits = {"minimum": value - draw(st.integers(0, 2)), "maximum": value}
    else:
        limits = {}
        value = draw(st.booleans()) if kind == "boolean" else None
    schema |= {word: limit for word, limit in limits.items() if draw(st.booleans())}
    if draw(st.booleans()):
        schema["enum"] = [value]
    return schema, value, [([], kind)]


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    """A schema of arrays of one thing, and an array of it."""
    items, item, places = draw(inner)
    many = draw(st.integers(0, 2))
    schema = {"type": "array", "items": items, "minItems": many, "maxItems": many + 1}
    below = [([i, *place], kind) for i in range(many) for place, kind in places]
    return schema, [deepcopy(item) for _ in range(many)], [([], "array"), *below]


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    """A schema of objects, and an object with all its properties but some of the optional ones."""
    properties: dict[str, Any] = {}
    value: dict[str, Any] = {}
    places: list[Place] = [([], "object")]
    required: list[str] = []
    for name in draw(st.lists(names, unique=True, max_size=3)):
        properties[name], item, below = draw(inner)
        needed, given = draw(st.booleans()), draw(st.booleans())
        required += [name] if needed else []
        if needed or given:
            value[name] = item
            places += [([name, *place], kind) for place, kind in below]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    return schema, value, places


pairs = objects(st.recursive(leaves(), lambda inner: arrays(inner) | objects(inner), max_leaves=6))


def pointer(place: list[str | int]) -> str:
    """RFC 6901, written a second time."""
    return "".join("/" + str(s).replace("~", "~0").replace("/", "~1") for s in place)


def spoilt(value: Any, place: list[str | int], wrong: Any) -> Any:
    """The value with something else at one place."""
    if not place:
        return wrong
    step, *rest = place
    changed = deepcopy(value)
    changed[step] = spoilt(value[step], rest, wrong)
    return changed


def refusal(schema: object, args: object) -> str:
    """The message of the INVALID_ARGUMENTS that must come."""
    try:
        validate_args(schema, args)
    except CourseError as error:
        assert error.code == "INVALID_ARGUMENTS"
        return error.message
    raise AssertionError("it was taken")


@examples(80)
@given(pairs)
def test_arguments_that_fit_come_back_frozen_and_nothing_is_changed(pair: Pair) -> None:
    """The answer is an equal copy; schema and arguments are as before, to the last type."""
    schema, args, _ = pair
    before = canonical_json([schema, args]), repr((schema, args))
    frozen = validate_args(schema, args)
    assert frozen == deep_freeze(args)
    assert same_json(frozen, args)
    assert frozen is not args
    assert (canonical_json([schema, args]), repr((schema, args))) == before
    assert validate_args(deep_freeze(schema), frozen) == frozen
    assert validate_args(json.loads(json.dumps(schema)), args) == frozen
    spec = ToolSpec("t", "", schema, "read")
    assert validate_args(spec.input_schema, args) == frozen


@examples(120)
@given(pairs, st.integers(0, 99), st.integers(0, 99))
def test_one_wrong_type_is_one_line_with_its_pointer(pair: Pair, where: int, which: int) -> None:
    """A value of another type, True for a number too, is refused at its very place; no other is."""
    schema, args, places = pair
    place, kind = places[where % len(places)]
    wrong, told = WRONG[kind][which % len(WRONG[kind])]
    bad = spoilt(args, place, wrong)
    before = repr(bad)
    assert refusal(schema, bad) == f"{pointer(place)}: expected {kind}, got {told}"
    assert repr(bad) == before


@examples(80)
@given(pairs, st.integers(0, 99), names)
def test_a_missing_and_an_unknown_property_have_the_pointer_they_would_have(
    pair: Pair, where: int, name: str
) -> None:
    """What is required and not there, and what nobody knows, is named where it belongs."""
    schema, args, places = pair
    holders = [place for place, kind in places if kind == "object"]
    place = holders[where % len(holders)]
    inner_schema, inner = schema, args
    for step in place:
        inner_schema = inner_schema["items" if isinstance(step, int) else "properties"]
        inner_schema = inner_schema if isinstance(step, int) else inner_schema[step]
        inner = inner[step]
    for missing in inner_schema["required"]:
        without = {key: item for key, item in inner.items() if key != missing}
        bad = spoilt(args, place, without)
        assert refusal(schema, bad) == f"{pointer([*place, missing])}: is required"
    assume(name not in inner_schema["properties"])
    more = spoilt(args, place, {**inner, name: 1})
    if inner_schema.get("additionalProperties"):
        assert same_json(validate_args(schema, more), more)
    else:
        assert refusal(schema, more) == f"{pointer([*place, name])}: is not a known property"


def test_a_giant_number_is_no_schema_and_no_argument() -> None:
    """An integer that no JSON can hold is refused by code, as a limit and as a value."""
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert outcome(lambda: validate_args(schema, {"n": 10**5000})) == "INVALID_ARGUMENTS"
    schema["properties"]["n"]["minimum"] = 10**5000
    assert outcome(lambda: check_schema(schema)) == "INVALID_SCHEMA"


words = st.sampled_from(
    ["type", "properties", "required", "items", "enum", "minimum", "maximum", "minItems",
     "minLength", "additionalProperties", "description", "$ref", "pattern"]
)  # fmt: skip
schema_values = st.recursive(
    json_values | st.sampled_from(["object", "array", "integer", "string", ["a"]]),
    lambda inner: st.dictionaries(words | names, inner, max_size=4),
    max_leaves=8,
)


@examples(120)
@given(schema_values, json_values, st.booleans())
def test_any_schema_and_any_arguments_give_a_value_or_one_of_two_codes(
    schema: Any, args: Any, is_object: bool
) -> None:
    """Whatever a plugin writes and a model sends, no other error, and never a long message."""
    if is_object:
        schema = {"type": "object", "properties": schema}
    try:
        validate_args(schema, args)
    except CourseError as error:
        assert error.code in ("INVALID_SCHEMA", "INVALID_ARGUMENTS")
        assert 0 < len(error.message) <= MAX_MESSAGE
        is_bad_schema = outcome(lambda: check_schema(schema)) == "INVALID_SCHEMA"
        assert is_bad_schema == (error.code == "INVALID_SCHEMA")
