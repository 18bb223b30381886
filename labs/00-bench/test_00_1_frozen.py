"""Lab 00.1: values that nobody can change."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from pi_course import values
from pi_course.errors import CourseError


def _code_of(value):
    with pytest.raises(CourseError) as caught:
        values.deep_freeze(value)
    return caught.value.code


def test_changing_the_source_later_leaves_the_frozen_value_alone():
    """A list deep inside the source can be changed, and the frozen copy does not notice."""
    source = {"files": ["a.py"], "options": {"depth": [1, [2]]}}
    frozen = values.deep_freeze(source)

    source["files"].append("b.py")
    source["options"]["depth"][1].append(3)
    source["options"]["new"] = True

    assert frozen == {"files": ("a.py",), "options": {"depth": (1, (2,))}}


def test_no_level_of_a_frozen_value_can_be_changed():
    """Every dict at every depth refuses every change with TypeError, and every list is a tuple."""
    frozen = values.deep_freeze({"top": 1, "list": [{"inner": [1, 2]}]})
    inner = frozen["list"][0]

    for target in (frozen, inner):
        before = dict(target)
        for change in (
            lambda d: d.update(x=1),
            lambda d: d.__setitem__("x", 1),
            lambda d: d.__delitem__(next(iter(d))),
            lambda d: d.setdefault("x", 1),
            lambda d: d.pop(next(iter(d))),
            lambda d: d.popitem(),
            lambda d: d.clear(),
            lambda d: d.__ior__({"x": 1}),
        ):
            with pytest.raises(TypeError):
                change(target)
        assert dict(target) == before
    assert type(frozen["list"]) is tuple
    assert type(inner["inner"]) is tuple


def test_a_frozen_value_can_be_copied_serialised_and_pickled():
    """json, copy.deepcopy and pickle take a frozen value as they take a plain one."""
    frozen = values.deep_freeze({"a": [1, {"b": None}], "c": "é"})

    assert json.loads(json.dumps(frozen)) == {"a": [1, {"b": None}], "c": "é"}
    assert copy.deepcopy(frozen) == frozen
    assert copy.copy(frozen) == frozen
    again = pickle.loads(pickle.dumps(frozen))
    assert again == frozen
    with pytest.raises(TypeError):
        again["a"][1]["b"] = 1


def test_thaw_gives_back_an_equal_value_that_shares_nothing():
    """Thawing a frozen value gives plain dicts and lists, fresh ones every time."""
    source = {"a": [1, {"b": [True, None]}], "c": {}}
    frozen = values.deep_freeze(source)
    first, second = values.thaw(frozen), values.thaw(frozen)

    assert first == second == source
    assert type(first) is dict
    assert type(first["a"]) is list
    assert type(first["a"][1]) is dict
    first["a"][1]["b"].append("mine")
    first["c"]["mine"] = 1
    assert second == source
    assert frozen == {"a": (1, {"b": (True, None)}), "c": {}}


def test_a_cycle_is_refused_and_a_shared_value_is_not():
    """A container inside itself is CYCLIC; one that stands in two places is frozen twice."""
    ring: list[object] = [1]
    ring.append({"again": ring})
    loop: dict[str, object] = {}
    loop["self"] = [loop]
    shared = ["x"]

    assert _code_of(ring) == "CYCLIC"
    assert _code_of({"deep": [loop]}) == "CYCLIC"
    twice = values.deep_freeze({"left": shared, "right": [shared, shared]})
    assert twice == {"left": ("x",), "right": (("x",), ("x",))}


def test_what_json_cannot_say_is_refused():
    """NaN, infinities, keys that are no text, lone surrogates, bytes, endless depth: NOT_JSON."""
    deep: object = 0
    for _ in range(5_000):
        deep = [deep]
    for bad in (
        float("nan"),
        [float("inf")],
        {"a": float("-inf")},
        {1: 2},
        {"ok": {None: 1}},
        "\ud800",
        {"\udfff": 1},
        b"bytes",
        {1, 2},
        object(),
        deep,
    ):
        assert _code_of(bad) == "NOT_JSON"
