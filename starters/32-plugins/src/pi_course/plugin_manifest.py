"""What a plugin says of itself: who it is, what it may ask for, where its tools lie.

A manifest is data and a claim. It is read without touching the code, what comes out cannot be
changed, and it proves nothing: no publisher, no content, no permission that was granted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pi_course.plugin_versions import ApiRange

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
    raise NotImplementedError("实现 Plugin 权限声明校验")
