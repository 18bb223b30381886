"""Versions cut into pieces by hand, compared piece by piece."""

from __future__ import annotations

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


_DIGITS = frozenset("0123456789")
_WORD = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


def _is_word(text: str) -> bool:
    return text != "" and _WORD.issuperset(text)


def _is_number(text: str) -> bool:
    return text != "" and _DIGITS.issuperset(text) and (text == "0" or text[0] != "0")


def _is_identifier(text: str) -> bool:
    return _is_number(text) if _DIGITS.issuperset(text) else _is_word(text)


def parse_version(text: object) -> Version:
    """Cut at the plus, at the first dash, at the dots; judge each piece by itself."""
    if not isinstance(text, str) or len(text) > 256:
        raise CourseError("INVALID_VERSION", "no text, or too long a one")
    rest, plus, build = text.partition("+")
    core, dash, prerelease = rest.partition("-")
    numbers = core.split(".")
    pieces = prerelease.split(".") if dash else []
    builds = build.split(".") if plus else []
    if (
        len(numbers) != 3
        or not all(map(_is_number, numbers))
        or not all(map(_is_identifier, pieces))
        or not all(map(_is_word, builds))
    ):
        raise CourseError("INVALID_VERSION", "not MAJOR.MINOR.PATCH")
    major, minor, patch = map(int, numbers)
    found = tuple(int(piece) if _is_number(piece) else piece for piece in pieces)
    return Version(major, minor, patch, found, tuple(builds))


def compare_versions(left: str, right: str) -> int:
    """Number by number, then identifier by identifier, until two differ."""
    one, other = parse_version(left), parse_version(right)
    cores = [(v.major, v.minor, v.patch) for v in (one, other)]
    if cores[0] != cores[1]:
        return 1 if cores[0] > cores[1] else -1
    if not one.prerelease or not other.prerelease:
        return bool(other.prerelease) - bool(one.prerelease)
    for mine, yours in zip(one.prerelease, other.prerelease, strict=False):
        if mine != yours:
            return _differ(mine, yours)
    lengths = len(one.prerelease), len(other.prerelease)
    return (lengths[0] > lengths[1]) - (lengths[0] < lengths[1])


def _differ(mine: int | str, yours: int | str) -> int:
    if isinstance(mine, int) and isinstance(yours, int):
        return 1 if mine > yours else -1
    if isinstance(mine, int) or isinstance(yours, int):
        return -1 if isinstance(mine, int) else 1
    return 1 if mine > yours else -1


def check_host(api: ApiRange | None, runtime_api: str) -> None:
    """The first of three questions that is answered with no."""
    if api is None:
        problem = "the plugin names no host"
    elif compare_versions(runtime_api, api.minimum) == -1:
        problem = "the host is too old"
    elif compare_versions(runtime_api.partition("+")[0].partition("-")[0], api.below) != -1:
        problem = "the plugin is too old for the host"
    else:
        return
    raise CourseError("INCOMPATIBLE_VERSION", f"runtimeApiRange: {problem}")


def read_manifest(data: bytes, parsers: Mapping[int, Callable[[bytes], Parsed]]) -> Parsed:
    """Look for a parser whose number is written like the document's."""
    document = strict_json(data)
    if not isinstance(document, dict):
        raise CourseError("INVALID_SCHEMA", "no object")
    written = repr(document.get("schemaVersion"))
    for number, parser in parsers.items():
        if repr(number) == written:
            return parser(data)
    raise CourseError("UNSUPPORTED_SCHEMA_VERSION", "schemaVersion: no parser for it")
