"""Three numbers that answer three questions.

schemaVersion: may this host read the document at all? version: which release is it, and is it
older or newer than another? runtimeApiRange: was it made for this host? None answers another's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def compare_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1: `left` is older than, of equal rank with, or newer than `right`.

    The three numbers decide first. Then a prerelease is older than the release itself, and
    identifiers decide from left to right: numbers by value, text by ASCII order, a number before
    text, the shorter list before the longer one that starts with it. Build metadata is not
    looked at. CourseError INVALID_VERSION as parse_version.
    """
    first, second = _rank(parse_version(left)), _rank(parse_version(right))
    return (first > second) - (first < second)


def check_host(api: ApiRange | None, runtime_api: str) -> None:
    """Return nothing when a host whose API is `runtime_api` lies inside the range `api`.

    The host must not be older than `minimum`, and its three numbers alone must be older than
    `below`: 2.0.0-rc.1 already brings what 2.0.0 breaks, so it is not before 2.0.0.
    CourseError INCOMPATIBLE_VERSION otherwise, also when there is no range: what was never
    tried is not accepted. The message names the side that has to move.
    """
    if api is None:
        raise CourseError("INCOMPATIBLE_VERSION", "runtimeApiRange: the plugin names no host")
    host = parse_version(runtime_api)
    numbers = f"{host.major}.{host.minor}.{host.patch}"
    if compare_versions(runtime_api, api.minimum) < 0:
        raise CourseError("INCOMPATIBLE_VERSION", "runtimeApiRange.minimum: upgrade the host")
    if compare_versions(numbers, api.below) >= 0:
        raise CourseError("INCOMPATIBLE_VERSION", "runtimeApiRange.below: upgrade the plugin")


def read_manifest(data: bytes, parsers: Mapping[int, Callable[[bytes], Parsed]]) -> Parsed:
    """Return what the parser for this document's schemaVersion makes of `data`.

    `parsers` holds one parser for every schemaVersion that this host knows. The number is read
    before anything else is judged: in a newer schema an unknown field may be the one that
    protects. CourseError UNSUPPORTED_SCHEMA_VERSION when it is missing, no integer (true and
    1.0 are none), or not in `parsers`; INVALID_SCHEMA when `data` is no JSON object.
    """
    document = strict_json(data)
    if not isinstance(document, Mapping):
        raise CourseError("INVALID_SCHEMA", "the manifest must be an object")
    number = document.get("schemaVersion")
    if type(number) is not int or number not in parsers:
        known = ", ".join(map(str, sorted(parsers)))
        raise CourseError("UNSUPPORTED_SCHEMA_VERSION", f"schemaVersion: this host reads {known}")
    return parsers[number](data)


_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?"
    rf"(?:\+({_BUILD}(?:\.{_BUILD})*))?"
)


def _rank(version: Version) -> tuple[object, ...]:
    """A sort key: a release has no identifiers, yet comes after all of its prereleases."""
    identifiers = tuple(
        (0, one, "") if isinstance(one, int) else (1, 0, one) for one in version.prerelease
    )
    return (version.major, version.minor, version.patch, not identifiers, identifiers)
