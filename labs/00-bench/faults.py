"""Faults of chapter 00: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import copy
import json
import math
from contextlib import suppress
from types import MappingProxyType

from pi_course.errors import CourseError


def shallow_freeze(deep_freeze):
    """Freeze the outermost dict and keep what is inside it."""

    def faulty(value):
        frozen = deep_freeze(value)
        return type(frozen)(value) if isinstance(value, dict) else frozen

    return faulty


def copy_is_enough(deep_freeze):
    """Hand out a deep copy: nobody else can change it, but its owner can."""

    def faulty(value):
        deep_freeze(value)
        return copy.deepcopy(value)

    return faulty


def mapping_proxy(deep_freeze):
    """Make every dict a MappingProxyType, as the standard library suggests."""

    def proxied(value):
        if isinstance(value, dict):
            return MappingProxyType({key: proxied(item) for key, item in value.items()})
        return tuple(map(proxied, value)) if isinstance(value, tuple) else value

    return lambda value: proxied(deep_freeze(value))


def shared_is_a_cycle(deep_freeze):
    """Remember every container ever seen instead of those that are open."""

    def check(value, seen):
        if isinstance(value, (dict, list)):
            if id(value) in seen:
                raise CourseError("CYCLIC", "seen before")
            seen.add(id(value))
            for item in value.values() if isinstance(value, dict) else value:
                check(item, seen)

    def faulty(value):
        frozen = deep_freeze(value)
        check(value, set())
        return frozen

    return faulty


def cycle_becomes_null(deep_freeze):
    """Cut a cycle silently instead of refusing it."""

    def faulty(value):
        try:
            return deep_freeze(value)
        except CourseError as error:
            if error.code == "CYCLIC":
                return None
            raise

    return faulty


def nan_becomes_null(deep_freeze):
    """Do as JSON.stringify does: NaN and the infinities turn into null."""

    def faulty(value):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return deep_freeze(value)

    return faulty


def keys_become_text(deep_freeze):
    """Do as json.dumps does: a key that is a number turns into text."""

    def faulty(value):
        if isinstance(value, dict):
            value = {str(k) if isinstance(k, int) else k: item for k, item in value.items()}
        return deep_freeze(value)

    return faulty


def thaw_one_level(thaw):
    """Thaw the outermost container and share the rest."""

    def faulty(value):
        whole = thaw(value)
        return dict(value) if isinstance(whole, dict) else whole

    return faulty


def thaw_is_cached(thaw):
    """Thaw a value once and hand the same copy to everybody."""
    cache = {}

    def faulty(value):
        return cache.setdefault(repr(value), thaw(value))

    return faulty


def python_equality(same_json):
    """Compare with ==, for which True is 1."""

    def faulty(left, right):
        same_json(left, right)
        plain = [json.loads(json.dumps(value)) for value in (left, right)]
        return plain[0] == plain[1]

    return faulty


def key_order_kept(canonical_json):
    """Write the keys in the order in which they were put in."""

    def faulty(value):
        canonical_json(value)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    return faulty


def ascii_escapes(canonical_json):
    """Write characters outside ASCII as escapes."""

    def faulty(value):
        return canonical_json(value).decode().encode("ascii", "backslashreplace")

    return faulty


def parsed_stays_plain(parse_json):
    """Return what json.loads returned, for anybody to change."""

    def faulty(text):
        parse_json(text)
        return json.loads(text)

    return faulty


def last_key_wins(parse_json):
    """Let the last of two equal keys win, as json.loads does."""

    def faulty(text):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text))
        return parse_json(text)

    return faulty


def reading_moves_the_clock(now_ms):
    """Let a millisecond pass with every look at the clock."""

    def faulty(self):
        now = now_ms(self)
        self.advance(1)
        return now

    return faulty


def time_goes_back(advance):
    """Take a negative step as no step instead of refusing it."""

    def faulty(self, ms):
        return advance(self, max(ms, 0))

    return faulty


def one_count_for_all(next_):
    """Count all prefixes together."""

    def faulty(self, prefix):
        return prefix + next_(self, "")

    return faulty


def count_is_global(next_):
    """Keep the counts in the module, shared by every Ids."""
    counts = {}

    def faulty(self, prefix):
        next_(self, prefix)
        counts[prefix] = counts.get(prefix, 0) + 1
        return f"{prefix}-{counts[prefix]}"

    return faulty
