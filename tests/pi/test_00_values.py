"""Chapter 00: values frozen, thawed, compared and written in one way."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pi_course.errors import CourseError
from pi_course.values import MAX_DEPTH, canonical_json, deep_freeze, parse_json, same_json, thaw

from tests.pi.arbitrary import examples, json_values, outcome, scalars, texts


def containers(value: object) -> list[Any]:
    """All lists, tuples and dicts in a value, itself among them."""
    if not isinstance(value, (dict, list, tuple)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for item in inner for found in containers(item))]


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    pairs = [(key, shuffled(item, chance)) for key, item in value.items()]
    return dict(chance.sample(pairs, len(pairs)))


def nested(depth: int, inmost: object = None) -> object:
    """A value inside so many containers, lists and dicts by turns."""
    for level in range(depth):
        inmost = [inmost] if level % 2 else {"k": inmost}
    return inmost


@examples(120)
@given(json_values)
def test_what_is_thawed_is_what_was_frozen_and_shares_nothing(value: Any) -> None:
    """thaw undoes deep_freeze to the last type, and no container of the three is another's."""
    before = repr(value)
    frozen = deep_freeze(value)
    thawed = thaw(frozen)
    assert repr(thawed) == before == repr(value)
    every = [item for one in (value, frozen, thawed) for item in containers(one) if item != ()]
    assert len({id(item) for item in every}) == len(every)
    written = canonical_json(frozen)
    for item in containers(value) + containers(thawed):
        item.clear()
    assert canonical_json(frozen) == written


@examples(120)
@given(json_values, st.randoms(use_true_random=False))
def test_canonical_json_is_one_for_all_key_orders_and_reads_back(
    value: Any, chance: random.Random
) -> None:
    """Key order changes no byte; what is read back is written the same and is the same value."""
    written = canonical_json(value)
    assert canonical_json(shuffled(value, chance)) == written
    assert canonical_json(deep_freeze(value)) == written
    back = parse_json(written.decode())
    assert canonical_json(back) == written
    assert repr(shuffled_away(thaw(back))) == repr(shuffled_away(value))
    assert b"\n" not in written


def shuffled_away(value: Any) -> Any:
    """The value with the keys of its objects in order."""
    if isinstance(value, list):
        return [shuffled_away(item) for item in value]
    if isinstance(value, dict):
        return {key: shuffled_away(value[key]) for key in sorted(value)}
    return value


alike = st.sampled_from([True, 1, 1.0, False, 0, 0.0, -0.0, "1", None]) | scalars


@examples(120)
@given(alike, alike, st.integers(0, 3))
def test_two_scalars_are_the_same_only_if_type_and_value_are(
    left: object, right: object, depth: int
) -> None:
    """same_json sees what == does not: True, 1 and 1.0 are three values, at every depth."""
    assert same_json(nested(depth, left), nested(depth, right)) == (repr(left) == repr(right))


def test_true_one_and_one_point_nought_are_three_values() -> None:
    """No two of the values that Python holds for equal or alike are the same JSON."""
    alike = [True, 1, 1.0, "1", "true", [1], [True], {"1": 1}, False, 0, 0.0, -0.0, None, "", [],
             {}]  # fmt: skip
    for i, left in enumerate(alike):
        for j, right in enumerate(alike):
            assert same_json(left, right) == (i == j), (left, right)


NOT_JSON = [
    math.nan, math.inf, -math.inf, "\ud800", "a\udfff", b"x", {1}, object(), 1j, range(2),
    {1: 1}, {None: 1}, {True: 1}, {"\udc00": 1}, {("a",): 1},
    10**4300, -(10**4300), 1 << 20_000,
]  # fmt: skip


@pytest.mark.parametrize("inmost", NOT_JSON, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_what_json_cannot_write_is_not_json_wherever_it_is(inmost: object, depth: int) -> None:
    """NaN, infinities, lone surrogates, other types, other keys, giant integers: one code."""
    value = nested(depth, inmost)
    for refuse in (deep_freeze, canonical_json, lambda value: same_json(None, value)):
        with pytest.raises(CourseError) as caught:
            refuse(value)
        assert caught.value.code == "NOT_JSON"


def test_an_integer_of_4300_digits_is_the_longest_and_reads_back() -> None:
    """What can be frozen can be written and read: 4,300 digits, and not one more, both ways."""
    longest = 10**4300 - 1
    for value in (longest, -longest, [longest]):
        assert thaw(parse_json(canonical_json(value).decode())) == value
    for digits in ("1" + "0" * 4300, "-1" + "0" * 4300, "[" + "9" * 5000 + "]"):
        assert outcome(lambda text=digits: parse_json(text)) == "NOT_JSON"


@examples(60)
@given(st.integers(0, 6), st.integers(0, 6), json_values)
def test_a_container_in_itself_is_cyclic_and_one_in_two_places_is_not(
    around: int, inside: int, other: Any
) -> None:
    """CYCLIC at whatever distance the cycle closes; sharing is fine and is no longer shared."""
    loop: list[Any] = [other]
    loop.append(nested(inside, loop))
    assert outcome(lambda: deep_freeze(nested(around, loop))) == "CYCLIC"
    shared = [other]
    assert thaw(deep_freeze([shared, {"k": shared}, nested(inside, shared)])) == [
        shared, {"k": shared}, nested(inside, shared),
    ]  # fmt: skip


def test_depth_ends_at_max_depth_for_values_and_for_texts() -> None:
    """MAX_DEPTH containers are taken, one more is NOT_JSON, and 100,000 are no other error."""
    deepest = nested(MAX_DEPTH)
    assert thaw(parse_json(canonical_json(deepest).decode())) == deepest
    for depth in (MAX_DEPTH + 1, MAX_DEPTH + 2, 900):
        assert outcome(lambda depth=depth: deep_freeze(nested(depth))) == "NOT_JSON"
        assert outcome(lambda depth=depth: parse_json("[" * depth + "]" * depth)) == "NOT_JSON"
    assert outcome(lambda: parse_json("[" * 100_000)) == "NOT_JSON"


junk = [*'{}[]",:\\0123456789.-+eEtrufalsn \n', '"a":', "\\ud800", "NaN", "1e999"]
pieces = st.sampled_from(junk)


@examples(120)
@given(st.lists(pieces | texts, max_size=12).map("".join), json_values, st.integers(0, 99))
def test_parse_json_has_a_value_or_one_code_for_any_text(
    noise: str, value: Any, place: int
) -> None:
    """Noise, and good JSON with noise in it: a value that is written back, or NOT_JSON."""
    good = canonical_json(value).decode()
    place %= len(good) + 1
    for text in (noise, good[:place], good[:place] + noise + good[place:]):
        found = outcome(lambda text=text: (parse_json(text),))
        if found != "NOT_JSON":
            assert isinstance(found, tuple)
            assert same_json(parse_json(canonical_json(found[0]).decode()), found[0])
