"""A manifest read by tables; every value carries its path with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.plugin_versions import ApiRange, parse_version

PERMISSIONS = ("read", "write", "execute", "network")
"""All that can be asked for, from the weakest to the strongest."""

PLUGIN_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TOOL_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*/)*[A-Za-z_][A-Za-z0-9_]*\.py")
SHA256 = re.compile(r"[0-9a-f]{64}")
MAX_NAME = 64
MAX_ENTRY = 200
MAX_TOOLS = 32


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """One tool as the manifest declares it; sha256 (hex, of the entry file) may be missing."""

    name: str
    entry: str
    permissions: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest of schema 1 in which every field has been checked; permissions in one order."""

    name: str
    version: str
    permissions: tuple[str, ...]
    tools: tuple[ToolDeclaration, ...]
    display_name: str
    api: ApiRange | None = None


class _Field:
    """A value of the document and the path that leads to it."""

    def __init__(self, value: object, path: str = "") -> None:
        self.value, self.path = value, path

    def fail(self, why: str, code: str = "INVALID_SCHEMA") -> NoReturn:
        raise CourseError(code, f"{self.path or 'document'}: {why}")

    def check(self, good: bool, why: str, code: str = "INVALID_SCHEMA") -> None:
        if not good:
            self.fail(why, code)

    def text(self) -> str:
        self.check(type(self.value) is str, "no text")
        return str(self.value)

    def items(self, most: int) -> list[_Field]:
        value = self.value
        if not isinstance(value, (list, tuple)) or not 0 < len(value) <= most:
            self.fail("no list of that length")
        return [_Field(item, f"{self.path}[{number}]") for number, item in enumerate(value)]

    def fields(self, table: dict[str, bool]) -> dict[str, _Field]:
        """`table`: name of the field and whether it has to be there."""
        value = self.value
        if not isinstance(value, Mapping):
            self.fail("no object")
        inside = f"{self.path}." if self.path else ""
        for name, needed in table.items():
            _Field(None, f"{inside}{name}").check(name in value or not needed, "is missing")
        self.check(all(name in table for name in value), "has a field that nobody knows")
        return {name: _Field(value[name], f"{inside}{name}") for name in table if name in value}


_DOCUMENT = dict.fromkeys(("name", "version", "permissions", "tools"), True) | dict.fromkeys(
    ("schemaVersion", "displayName", "runtimeApiRange"), False
)
_TOOL = {"name": True, "entry": True, "permissions": True, "sha256": False}


def parse_manifest(data: bytes) -> Manifest:
    """Fields by table, each with its path; tools last, because they need the declaration."""
    fields = _Field(strict_json(data)).fields(_DOCUMENT)
    if "schemaVersion" in fields:
        number = fields["schemaVersion"]
        number.check(type(number.value) is int and number.value == 1, "is not 1")
    name = fields["name"].text()
    matches = PLUGIN_NAME.fullmatch(name) is not None and len(name) <= MAX_NAME
    fields["name"].check(matches, "no plugin name", "INVALID_NAME")
    version = _read_version(fields["version"])
    shown = _read_shown(fields["displayName"]) if "displayName" in fields else name
    api = _read_range(fields["runtimeApiRange"]) if "runtimeApiRange" in fields else None
    ceiling = _read_permissions(fields["permissions"])
    tools = tuple(_read_tool(tool, ceiling) for tool in fields["tools"].items(MAX_TOOLS))
    for number, tool in enumerate(tools):
        earlier = {other.name for other in tools[:number]}
        _Field(None, f"tools[{number}].name").check(
            tool.name not in earlier, "is taken", "DUPLICATE_TOOL"
        )
    return Manifest(name, version, ceiling, tools, shown, api)


def _read_version(field: _Field) -> str:
    try:
        parse_version(field.value)
    except CourseError:
        field.fail("no version")
    return field.text()


def _read_shown(field: _Field) -> str:
    text = field.text()
    field.check(text.isprintable() and text.strip() != "" and len(text) <= 80, "not printable")
    return text


def _read_range(field: _Field) -> ApiRange:
    ends = field.fields({"minimum": True, "below": True})
    return ApiRange(minimum=_read_version(ends["minimum"]), below=_read_version(ends["below"]))


def _read_permissions(field: _Field) -> tuple[str, ...]:
    found: set[str] = set()
    for item in field.items(len(PERMISSIONS)):
        word = item.text()
        item.check(word in PERMISSIONS and word not in found, "unknown or repeated")
        found.add(word)
    return tuple(sorted(found, key=PERMISSIONS.index))


def _read_tool(field: _Field, ceiling: tuple[str, ...]) -> ToolDeclaration:
    fields = field.fields(_TOOL)
    name, entry = fields["name"].text(), fields["entry"].text()
    fields["name"].check(TOOL_NAME.fullmatch(name) is not None and len(name) <= MAX_NAME, "no name")
    inside = ENTRY.fullmatch(entry) is not None and len(entry) <= MAX_ENTRY
    fields["entry"].check(inside, "no path to a .py file", "ENTRY_ESCAPE")
    digest = None
    if "sha256" in fields:
        digest = fields["sha256"].text()
        fields["sha256"].check(SHA256.fullmatch(digest) is not None, "no digest")
    for permission in fields["permissions"].items(len(PERMISSIONS)):
        word = permission.text()
        why = f"{name} asks for {word}" if word in PERMISSIONS else "unknown"
        permission.check(word in ceiling, why, "PERMISSION_ESCALATION")
    return ToolDeclaration(name, entry, _read_permissions(fields["permissions"]), digest)
