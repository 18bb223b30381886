"""Lab 00.2: one way to write a value, to compare two, to tell the time and to count."""

from __future__ import annotations

import random

import pytest
from pi_course import bench, values
from pi_course.errors import CourseError


def _random_value(rng, depth=3):
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [_random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {_random_text(rng): _random_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return (
        None,
        rng.random() < 0.5,
        rng.randrange(-9, 9),
        rng.uniform(-1e6, 1e6),
        _random_text(rng),
        0,
    )[kind]


def _random_text(rng):
    return "".join(rng.choice('ab"\\\n\u2028é数😀 ') for _ in range(rng.randrange(5)))


def _shuffled(value, rng):
    if isinstance(value, dict):
        items = [(key, _shuffled(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def test_true_is_not_one_and_order_of_keys_is_nothing():
    """same_json tells True from 1 and 1 from 1.0 at any depth, but not a tuple from a list."""
    assert not values.same_json(True, 1)
    assert not values.same_json({"a": [0]}, {"a": [False]})
    assert not values.same_json([1], [1.0])
    assert not values.same_json({"a": None}, {})
    assert not values.same_json([1, 2], [2, 1])
    assert values.same_json([1, {"a": (2,)}], (1, {"a": [2]}))
    assert values.same_json({"a": 1, "b": 2}, {"b": 2, "a": 1})


def test_canonical_bytes_depend_on_the_value_alone():
    """Keys are sorted at every depth, text is plain UTF-8, and no byte is spent on spaces."""
    value = {"b": [1, True, None], "a": {"z": "é", "y": 0.5}}
    assert values.canonical_json(value) == '{"a":{"y":0.5,"z":"é"},"b":[1,true,null]}'.encode()

    seed = 20
    rng = random.Random(seed)
    for round_ in range(100):
        value = _random_value(rng)
        one = values.canonical_json(value)
        assert one == values.canonical_json(_shuffled(value, rng)), f"seed {seed}, round {round_}"
        assert one == values.canonical_json(values.deep_freeze(value)), f"seed {seed}"


def test_parsing_undoes_canonical_writing():
    """parse_json gives back, frozen, the value whose canonical bytes it reads."""
    seed = 21
    rng = random.Random(seed)
    for round_ in range(100):
        value = {"value": _random_value(rng)}
        text = values.canonical_json(value).decode()
        parsed = values.parse_json(text)
        assert values.same_json(parsed, value), f"seed {seed}, round {round_}"
        with pytest.raises(TypeError):
            parsed["value"] = 1
    assert values.parse_json(' [1, "\\u00e9"]\r\n') == (1, "é")


def test_text_that_is_not_json_is_refused():
    """NaN, a key given twice, a lone surrogate, bottomless nesting and junk are all NOT_JSON."""
    for text in (
        "",
        "NaN",
        "[-Infinity]",
        "1e999",
        '{"path": "a", "path": "b"}',
        '[{"x": {"k": 1, "k": 1}}]',
        '"\\ud800"',
        "1 2",
        "{'a': 1}",
        '{"a": 1',
        "[" * 100_000,
        "[" * 500 + "]" * 500,
    ):
        with pytest.raises(CourseError) as caught:
            values.parse_json(text)
        assert caught.value.code == "NOT_JSON", text[:20]


def test_a_fake_clock_moves_only_when_it_is_told():
    """Reading does not move the clock, advancing moves this clock alone, and never back."""
    clock, other = bench.FakeClock(1_000), bench.FakeClock()
    assert [clock.now_ms(), clock.now_ms()] == [1_000, 1_000]
    clock.advance(250)
    clock.advance(0)
    assert clock.now_ms() == 1_250
    assert other.now_ms() == 0
    with pytest.raises(CourseError) as caught:
        clock.advance(-1)
    assert caught.value.code == "INVALID_TIME"
    assert clock.now_ms() == 1_250


def test_ids_count_each_prefix_for_itself():
    """The n-th id of a prefix is prefix-n, whatever other prefixes and other Ids have counted."""
    ids = bench.Ids()
    taken = [ids.next(prefix) for prefix in ("call", "entry", "call")]
    assert taken == ["call-1", "entry-1", "call-2"]
    assert bench.Ids().next("call") == "call-1"
    assert ids.next("entry") == "entry-2"
