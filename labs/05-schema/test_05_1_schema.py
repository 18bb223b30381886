"""Lab 05.1: which schemas a tool may have."""

import pytest
from pi_course import schema
from pi_course.errors import CourseError


def _object(**properties):
    return {"type": "object", "properties": properties}


def _pointers(wrong):
    """The JSON pointers of everything that is wrong with a schema."""
    with pytest.raises(CourseError) as caught:
        schema.check_schema(wrong)
    assert caught.value.code == "INVALID_SCHEMA", wrong
    return {line.partition(":")[0] for line in caught.value.message.splitlines()}


def _nested(depth):
    """A legal schema made of `depth` schemas inside each other."""
    inner = {"type": "string"}
    for _ in range(depth - 2):
        inner = {"type": "array", "items": inner}
    return _object(a=inner)


def test_the_whole_subset_is_accepted():
    """Every type and every keyword of the subset has its place, and none of them is required."""
    edit = {
        "type": "object",
        "description": "one replacement",
        "properties": {"old": {"type": "string", "minLength": 1}, "new": {"type": "string"}},
        "required": ["old", "new"],
        "additionalProperties": False,
    }
    tool = _object(
        path={"type": "string", "minLength": 1, "maxLength": 4096},
        mode={"type": "string", "enum": ["fast", "safe"], "description": "how"},
        edits={"type": "array", "items": edit, "minItems": 1, "maxItems": 50},
        limit={"type": "integer", "minimum": 1, "maximum": 1},
        ratio={"type": "number", "minimum": -0.5, "maximum": 2},
        level={"type": "integer", "enum": [0, 1]},
        deep={"type": "boolean"},
        nothing={"type": "null"},
        anything={"type": "array"},
        open={"type": "object", "additionalProperties": True},
    )
    assert schema.check_schema(tool) is None
    assert schema.check_schema({"type": "object"}) is None


def test_a_reference_or_an_unknown_keyword_is_refused_anywhere():
    """A keyword outside the subset, or of another type, is an error and not a comment."""
    remote = {"$ref": "https://example.org/path.json"}
    assert "/$ref" in _pointers({**_object(), "$ref": "#/$defs/a"})
    assert "/$defs" in _pointers({**_object(), "$defs": {}})
    string = {"type": "string"}
    for wrong in [
        {**_object(), "oneOf": [_object()]},
        _object(a=remote),
        _object(a={**string, **remote}),
        _object(a={"type": "array", "items": {**string, **remote}}),
        _object(a={**string, "pattern": "(a+)+$"}),
        _object(a={**string, "minimum": 1}),
        _object(a={"type": "integer", "minLength": 1}),
        _object(a={**string, "default": "x"}),
    ]:
        assert _pointers(wrong)
    assert schema.check_schema(_object(**{"$ref": string, "pattern": string})) is None


def test_depth_and_size_have_limits():
    """A schema nested too deep, or too big, is refused before anything walks through it."""
    assert schema.check_schema(_nested(schema.MAX_DEPTH)) is None
    for depth in [schema.MAX_DEPTH + 1, 50, 5_000]:
        assert _pointers(_nested(depth))
    circle = _object()
    circle["properties"]["again"] = circle
    assert _pointers(circle)
    room = schema.MAX_SCHEMA_BYTES - len('{"description":"","type":"object"}')
    assert schema.check_schema({"type": "object", "description": "x" * room}) is None
    assert _pointers({"type": "object", "description": "x" * (room + 1)})
    assert _pointers({"type": "object", "description": "水" * (room // 2)})


def test_a_malformed_schema_is_refused_where_it_is_wrong():
    """A wrong type, limit, enum or required name is reported at its own pointer, all at once."""
    for wrong, pointer in [
        ({"type": "string"}, "/type"),
        ({"properties": {}}, "/type"),
        ([], "/type"),
        (_object(a={}), "/properties/a/type"),
        (_object(a={"type": "text"}), "/properties/a/type"),
        (_object(a={"type": ["string", "null"]}), "/properties/a/type"),
        (_object(a={"type": "string", "minLength": True}), "/properties/a/minLength"),
        (_object(a={"type": "array", "maxItems": -1}), "/properties/a/maxItems"),
        (_object(a={"type": "array", "maxItems": 1.0}), "/properties/a/maxItems"),
        (_object(a={"type": "integer", "maximum": "9"}), "/properties/a/maximum"),
        (_object(a={"type": "integer", "minimum": 2, "maximum": 1}), "/properties/a/minimum"),
        (_object(a={"type": "array", "items": []}), "/properties/a/items"),
        (_object(a={"type": "string", "enum": []}), "/properties/a/enum"),
        (_object(a={"type": "integer", "enum": [1, True]}), "/properties/a/enum/1"),
        (_object(a={"type": "string", "description": 1}), "/properties/a/description"),
        ({**_object(), "additionalProperties": {"type": "string"}}, "/additionalProperties"),
        ({**_object(), "required": "a"}, "/required"),
        ({**_object(a={"type": "null"}), "required": ["a", "b"]}, "/required/1"),
        ({**_object(a={"type": "null"}), "required": ["a", "a"]}, "/required"),
    ]:
        assert _pointers(wrong) == {pointer}, wrong
    two = _object(**{"a/b": {"type": "text"}, "c": {"type": "array", "items": {}}})
    assert _pointers(two) == {"/properties/a~1b/type", "/properties/c/items/type"}
