"""What a plugin says of itself: who it is, what it may ask for, where its tools lie.

A manifest is data and a claim. It is read without touching the code, what comes out cannot be
changed, and it proves nothing: no publisher, no content, no permission that was granted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.plugin_versions import ApiRange, parse_version
from pi_course.values import JSONValue

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


def parse_manifest(data: bytes) -> Manifest:
    """Return the manifest that `data`, the bytes of a plugin.json of schema 1, holds.

    An object with name, version, permissions, tools, and if wanted schemaVersion (1),
    displayName (1 to 80 printable characters; the name stands in for it) and runtimeApiRange
    ({"minimum": version, "below": version}). A tool is an object with name, entry, permissions,
    and if wanted sha256. Names match PLUGIN_NAME and TOOL_NAME (at most MAX_NAME characters),
    version is a semantic version, permissions is a list of at least one of PERMISSIONS, none
    twice, tools holds 1 to MAX_TOOLS tools. Unknown fields are refused.

    Codes of CourseError, each with the path of the field and without the value it has:
    INVALID_SCHEMA         not JSON as strict_json reads it, or a field that is not as above
    INVALID_NAME           `name` is text, but no plugin name
    DUPLICATE_TOOL         two tools have one name
    ENTRY_ESCAPE           an entry is text, but no plain relative path to a .py file: absolute,
                           `..`, `\\`, a drive, a URL, a bare module name (ENTRY, MAX_ENTRY)
    PERMISSION_ESCALATION  a tool asks for what the plugin does not declare; names both
    """
    document = _object(
        strict_json(data),
        "",
        required=("name", "version", "permissions", "tools"),
        optional=("schemaVersion", "displayName", "runtimeApiRange"),
    )
    schema_version = document.get("schemaVersion", 1)
    if type(schema_version) is not int or schema_version != 1:
        _refuse("INVALID_SCHEMA", "schemaVersion", "this is the parser of schema 1")
    name = _text(document["name"], "name")
    if not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        _refuse("INVALID_NAME", "name", "must be words of a-z and 0-9 joined by -")
    permissions = _permissions(document["permissions"], "permissions")
    return Manifest(
        name=name,
        version=_version(document["version"], "version"),
        permissions=permissions,
        tools=_tools(document["tools"], permissions),
        display_name=_display_name(document.get("displayName", name)),
        api=_api(document["runtimeApiRange"]) if "runtimeApiRange" in document else None,
    )


def _object(
    value: JSONValue, where: str, *, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Mapping[str, JSONValue]:
    if not isinstance(value, Mapping):
        _refuse("INVALID_SCHEMA", where or "manifest", "must be an object")
    for key in required:
        if key not in value:
            _refuse("INVALID_SCHEMA", f"{where}.{key}".lstrip("."), "is missing")
    if set(value) - {*required, *optional}:
        known = ", ".join(required + optional)
        _refuse("INVALID_SCHEMA", where or "manifest", f"has a field that is none of {known}")
    return value


def _text(value: JSONValue, where: str) -> str:
    if not isinstance(value, str):
        _refuse("INVALID_SCHEMA", where, "must be text")
    return value


def _list(value: JSONValue, where: str, most: int) -> tuple[JSONValue, ...]:
    if not isinstance(value, tuple) or not 1 <= len(value) <= most:
        _refuse("INVALID_SCHEMA", where, f"must be a list of 1 to {most}")
    return value


def _version(value: JSONValue, where: str) -> str:
    try:
        parse_version(value)
    except CourseError as error:
        _refuse("INVALID_SCHEMA", where, error.message)
    return str(value)


def _api(value: JSONValue) -> ApiRange:
    where = "runtimeApiRange"
    bounds = _object(value, where, required=("minimum", "below"))
    return ApiRange(*(_version(bounds[end], f"{where}.{end}") for end in ("minimum", "below")))


def _display_name(value: JSONValue) -> str:
    text = _text(value, "displayName")
    hidden = any(unicodedata.category(char)[0] in "CZ" and char != " " for char in text)
    if hidden or not 1 <= len(text.strip()) <= len(text) <= 80:
        _refuse("INVALID_SCHEMA", "displayName", "must be 1 to 80 printable characters")
    return text


def _permissions(value: JSONValue, where: str) -> tuple[str, ...]:
    asked = _list(value, where, len(PERMISSIONS))
    for index, one in enumerate(asked):
        if one not in PERMISSIONS or one in asked[:index]:
            known = ", ".join(PERMISSIONS)
            _refuse("INVALID_SCHEMA", f"{where}[{index}]", f"must be one of {known}, and once")
    return tuple(one for one in PERMISSIONS if one in asked)


def _tools(value: JSONValue, declared: tuple[str, ...]) -> tuple[ToolDeclaration, ...]:
    tools: list[ToolDeclaration] = []
    for index, item in enumerate(_list(value, "tools", MAX_TOOLS)):
        tool = _tool(item, f"tools[{index}]")
        if any(tool.name == other.name for other in tools):
            _refuse("DUPLICATE_TOOL", f"tools[{index}].name", f"{tool.name} is taken")
        for one in tool.permissions:
            if one not in declared:
                where = f"tools[{index}].permissions"
                _refuse("PERMISSION_ESCALATION", where, f"{tool.name}: {one} is not declared")
        tools.append(tool)
    return tuple(tools)


def _tool(value: JSONValue, where: str) -> ToolDeclaration:
    fields = _object(
        value, where, required=("name", "entry", "permissions"), optional=("sha256",)
    )
    name = _text(fields["name"], f"{where}.name")
    if not TOOL_NAME.fullmatch(name) or len(name) > MAX_NAME:
        _refuse("INVALID_SCHEMA", f"{where}.name", "must be words of a-z and 0-9 joined by _ or -")
    entry = _text(fields["entry"], f"{where}.entry")
    if not ENTRY.fullmatch(entry) or len(entry) > MAX_ENTRY:
        _refuse("ENTRY_ESCAPE", f"{where}.entry", "must be a relative path to a .py file")
    digest = _text(fields["sha256"], f"{where}.sha256") if "sha256" in fields else None
    if digest is not None and not SHA256.fullmatch(digest):
        _refuse("INVALID_SCHEMA", f"{where}.sha256", "must be 64 digits of 0-9 and a-f")
    return ToolDeclaration(
        name, entry, _permissions(fields["permissions"], f"{where}.permissions"), digest
    )


def _refuse(code: str, where: str, why: str) -> NoReturn:
    raise CourseError(code, f"{where}: {why}")
