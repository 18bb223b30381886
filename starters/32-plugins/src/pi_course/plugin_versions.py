"""Three numbers that answer three questions.

schemaVersion: may this host read the document at all? version: which release is it, and is it
older or newer than another? runtimeApiRange: was it made for this host? None answers another's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

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
    raise NotImplementedError("实现 Plugin 权限声明校验")


def compare_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1: `left` is older than, of equal rank with, or newer than `right`.

    The three numbers decide first. Then a prerelease is older than the release itself, and
    identifiers decide from left to right: numbers by value, text by ASCII order, a number before
    text, the shorter list before the longer one that starts with it. Build metadata is not
    looked at. CourseError INVALID_VERSION as parse_version.
    """
    raise NotImplementedError("Lab 32.2 version policy 尚未实现")


def check_host(api: ApiRange | None, runtime_api: str) -> None:
    """Return nothing when a host whose API is `runtime_api` lies inside the range `api`.

    The host must not be older than `minimum`, and its three numbers alone must be older than
    `below`: 2.0.0-rc.1 already brings what 2.0.0 breaks, so it is not before 2.0.0.
    CourseError INCOMPATIBLE_VERSION otherwise, also when there is no range: what was never
    tried is not accepted. The message names the side that has to move.
    """
    raise NotImplementedError("Lab 32.2 version policy 尚未实现")


def read_manifest(data: bytes, parsers: Mapping[int, Callable[[bytes], Parsed]]) -> Parsed:
    """Return what the parser for this document's schemaVersion makes of `data`.

    `parsers` holds one parser for every schemaVersion that this host knows. The number is read
    before anything else is judged: in a newer schema an unknown field may be the one that
    protects. CourseError UNSUPPORTED_SCHEMA_VERSION when it is missing, no integer (true and
    1.0 are none), or not in `parsers`; INVALID_SCHEMA when `data` is no JSON object.
    """
    raise NotImplementedError("Lab 32.2 version policy 尚未实现")
