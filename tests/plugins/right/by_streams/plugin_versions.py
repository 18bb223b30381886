"""Versions with identifiers that can be compared, and a mark at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import TypeVar

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Version:
    """One version as semver.org 2.0.0 defines it: 1.2.3-rc.1+build.5.

    A prerelease identifier of digits only is an int, any other a str; build metadata says
    nothing about older or newer.
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiRange:
    """The host versions a plugin was made for: from `minimum` on, and before `below`."""

    minimum: str
    below: str


def parse_version(text: object) -> Version:
    """Return the Version that `text` spells, exactly as semver.org 2.0.0 allows it.

    Digits are 0 to 9, and no number has a leading zero; there is no "v", no blank, no newline,
    no range and no tag such as "latest". CourseError INVALID_VERSION for anything else, also
    for what is no str and what has more than 256 characters.
    """
    match = _VERSION.fullmatch(text) if isinstance(text, str) and len(text) <= 256 else None
    if match is None:
        raise CourseError("INVALID_VERSION", "not a semantic version (MAJOR.MINOR.PATCH)")
    major, minor, patch, prerelease, build = match.groups()
    identifiers = prerelease.split(".") if prerelease else []
    return Version(
        int(major),
        int(minor),
        int(patch),
        tuple(int(one) if one.isdecimal() else one for one in identifiers),
        tuple(build.split(".")) if build else (),
    )


_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?"
    rf"(?:\+({_BUILD}(?:\.{_BUILD})*))?"
)


@total_ordering
class _Identifier:
    """One identifier of a prerelease, or the end of them, or none at all."""

    def __init__(self, kind: int, value: int | str = 0) -> None:
        self.kind, self.value = kind, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identifier) and vars(self) == vars(other)

    def __lt__(self, other: _Identifier) -> bool:
        if self.kind != other.kind:
            return self.kind < other.kind
        return bool(self.value < other.value)  # type: ignore[operator]


_END, _NUMERIC, _TEXT, _RELEASE = range(4)


def _key(text: str) -> list[object]:
    version = parse_version(text)
    found = [
        _Identifier(_NUMERIC if isinstance(one, int) else _TEXT, one) for one in version.prerelease
    ]
    end = _Identifier(_END if found else _RELEASE)
    return [version.major, version.minor, version.patch, *found, end]


def compare_versions(left: str, right: str) -> int:
    """By keys that end in a mark: an end is below every identifier, a release above."""
    mine, yours = _key(left), _key(right)
    return 0 if mine == yours else (-1 if mine < yours else 1)


def check_host(api: ApiRange | None, runtime_api: str) -> None:
    """Within the range means: not before its start, and its numbers before its end."""
    inside = False
    if api is not None:
        numbers = [*_key(runtime_api)[:3], _Identifier(_RELEASE)]
        inside = _key(api.minimum) <= _key(runtime_api) and numbers < _key(api.below)
    if not inside:
        raise CourseError("INCOMPATIBLE_VERSION", "runtimeApiRange: not this host")


def read_manifest(data: bytes, parsers: Mapping[int, Callable[[bytes], Parsed]]) -> Parsed:
    """Only an int is asked for in the table."""
    match strict_json(data):
        case {"schemaVersion": bool()}:
            found = None
        case {"schemaVersion": int(number)}:
            found = parsers.get(number)
        case dict():
            found = None
        case _:
            raise CourseError("INVALID_SCHEMA", "no object")
    if found is None:
        raise CourseError("UNSUPPORTED_SCHEMA_VERSION", "schemaVersion: unknown here")
    return found(data)
