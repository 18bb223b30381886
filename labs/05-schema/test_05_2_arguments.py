"""Lab 05.2: arguments held against a schema."""

import copy

import pytest
from pi_course import schema
from pi_course.errors import CourseError


def _object(*required, **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def _error(accepts, args, code="INVALID_ARGUMENTS"):
    with pytest.raises(CourseError) as caught:
        schema.validate_args(accepts, args)
    assert caught.value.code == code, args
    return caught.value


def _pointers(accepts, args):
    """The JSON pointers of everything that is wrong with the arguments."""
    lines = _error(accepts, args).message.splitlines()
    return {line.partition(":")[0] for line in lines}


def _fits(accepts, value):
    """Whether a value is accepted as the one argument of a tool."""
    try:
        schema.validate_args(_object(a=accepts), {"a": value})
    except CourseError as error:
        assert error.code == "INVALID_ARGUMENTS"
        return False
    return True


EDIT = _object("old", "new", old={"type": "string"}, new={"type": "string"})
TOOL = _object(
    "path",
    path={"type": "string"},
    limit={"type": "integer"},
    edits={"type": "array", "items": EDIT},
)


def test_what_fits_comes_back_as_a_frozen_copy():
    """The arguments come back equal and frozen, nothing added, and their source stays as it is."""
    accepts, args = copy.deepcopy(TOOL), {"path": "a", "edits": [{"old": "x", "new": "y"}]}
    checked = schema.validate_args(accepts, args)
    assert checked == {"path": "a", "edits": ({"old": "x", "new": "y"},)}
    assert args == {"path": "a", "edits": [{"old": "x", "new": "y"}]}
    assert accepts == TOOL
    args["edits"][0]["old"] = "changed"
    assert checked["edits"][0]["old"] == "x"
    with pytest.raises(TypeError):
        checked["limit"] = 1
    assert schema.validate_args({"type": "object"}, {}) == {}


def test_every_error_is_listed_with_its_pointer():
    """Missing, extra and wrong values, at any depth, are all named in one message."""
    args = {
        "limit": "10",
        "a/b~c": 1,
        "edits": [{"old": "x", "new": "y"}, {"old": 5}, "z", {"old": "", "new": "", "extra": 0}],
    }
    assert _pointers(TOOL, args) == {
        "/path",
        "/limit",
        "/a~1b~0c",
        "/edits/1/old",
        "/edits/1/new",
        "/edits/2",
        "/edits/3/extra",
    }


def test_objects_are_closed_unless_they_say_otherwise():
    """An argument that the schema does not name is an error, at every level, by default."""
    assert _pointers(TOOL, {"path": "a", "pth": "b"}) == {"/pth"}
    assert _pointers({"type": "object"}, {"a": 1}) == {"/a"}
    closed = _object(a={"type": "object", "additionalProperties": False})
    assert _pointers(closed, {"a": {"b": 1}}) == {"/a/b"}
    opened = {**_object(a={"type": "string"}), "additionalProperties": True}
    assert schema.validate_args(opened, {"a": "x", "b": [1]}) == {"a": "x", "b": (1,)}
    assert _pointers(opened, {"a": 1, "b": [1]}) == {"/a"}


def test_nothing_is_coerced():
    """True is no integer, 1.0 is a number but no integer, "1" is neither, and null is only null."""
    values = [None, True, 1, 1.0, "1", [1], {}]
    for kind, fitting in [
        ("null", [0]),
        ("boolean", [1]),
        ("integer", [2]),
        ("number", [2, 3]),
        ("string", [4]),
        ("array", [5]),
        ("object", [6]),
    ]:
        found = [i for i, value in enumerate(values) if _fits({"type": kind}, value)]
        assert found == fitting, kind
    checked = schema.validate_args(_object(a={"type": "number"}), {"a": 1})
    assert type(checked["a"]) is int


def test_enums_and_limits_hold_at_both_ends():
    """A limit itself is allowed, one more or one less is not; lengths count characters."""
    two = {"type": "array", "minItems": 1, "maxItems": 2}
    assert [_fits(two, [0] * n) for n in range(4)] == [False, True, True, False]
    word = {"type": "string", "minLength": 1, "maxLength": 2}
    assert [_fits(word, "水" * n) for n in range(4)] == [False, True, True, False]
    assert _fits(word, "\U0001f600\U0001f600")
    few = {"type": "integer", "minimum": -1, "maximum": 1}
    assert [_fits(few, n) for n in range(-2, 3)] == [False, True, True, True, False]
    assert [_fits({"type": "number", "maximum": 0.5}, n) for n in [0.5, 0.51]] == [True, False]
    mode = {"type": "string", "enum": ["fast", "safe"]}
    assert [_fits(mode, word) for word in ["fast", "FAST", "fas", ""]] == [True] + [False] * 3
    pairs = {"type": "array", "enum": [[1, 2]]}
    assert [_fits(pairs, value) for value in [[1, 2], [True, 2], [2, 1]]] == [True, False, False]


def test_names_that_mean_something_elsewhere_are_plain_names():
    """__proto__, __class__, constructor or a keyword of the schema is a name like any other."""
    names = ["__proto__", "__class__", "constructor", "type", "required", "$ref", ""]
    for name in names:
        accepts = _object(name, **{name: {"type": "string"}})
        assert schema.validate_args(accepts, {name: "x"}) == {name: "x"}
        assert _pointers(accepts, {}) == {f"/{name}"}
        assert _pointers(accepts, {name: 1}) == {f"/{name}"}
        assert _pointers(TOOL, {"path": "a", name: "x"}) == {f"/{name}"}


def test_an_error_shows_no_argument_and_stays_short():
    """A message goes back to the model and into logs: it is bounded and repeats no value."""
    secret = "hunter2" * 500
    for args in [
        {"path": 1, "limit": secret},
        {"path": [secret]},
        {"path": "a", "edits": [secret] * 100},
        {"path": "a", "k" * 20_000: 1},
        {"path": "a", **{f"key-{i}": i for i in range(2_000)}},
    ]:
        message = _error(TOOL, args).message
        assert "hunter2" not in message
        assert len(message) <= schema.MAX_MESSAGE
    short = _object(a={"type": "string", "maxLength": 9, "enum": ["x"]})
    assert "hunter2" not in _error(short, {"a": secret}).message
    lines = _error(TOOL, {"path": "a", "two\nlines": 1}).message.splitlines()
    assert len(lines) == 1


def test_a_bad_schema_or_no_object_is_refused_with_its_own_code():
    """A schema out of bounds lets nothing through, and arguments are an object of JSON values."""
    for wrong in [{"$ref": "#"}, {"type": "string"}, _object(a={"type": "text"}), None]:
        _error(wrong, {}, code="INVALID_SCHEMA")
    for wrong in [None, [], "path", [("path", "a")]]:
        assert _pointers(TOOL, wrong) == {""}, wrong
    opened = {"type": "object", "additionalProperties": True}
    circle = {}
    circle["again"] = circle
    for wrong in [{"a": float("nan")}, {"a": object()}, {1: "a"}, circle]:
        _error(opened, wrong)
