"""What a host believes: the whole message against a whole message, one shape after the other."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pi_course.errors import CourseError
from pi_course.plugin_loader import VerifiedPlugin
from pi_course.plugin_manifest import PERMISSIONS, ToolDeclaration
from pi_course.schema import Permission, ToolSpec, check_schema
from pi_course.tools import ToolOutput
from pi_course.values import JSONValue, deep_freeze, same_json

PROTOCOL = 1
MAX_DESCRIPTION = 1_000


def hello_message(
    plugin: VerifiedPlugin,
    tools: Sequence[ToolDeclaration],
    permissions: Sequence[str],
    workspace: Path | None,
) -> JSONValue:
    """Return the first line for a worker: what it may offer, and all of the verified bytes.

    The worker compiles these bytes (base64 of each file) and gets no path to read them again.
    """
    files = plugin.content.files
    return deep_freeze(
        {
            "type": "hello",
            "protocol": PROTOCOL,
            "runtimeApi": plugin.runtime_api,
            "digest": plugin.content.digest,
            "permissions": list(permissions),
            "workspace": None if workspace is None else str(workspace),
            "entries": {tool.name: tool.entry for tool in tools},
            "files": {path: base64.b64encode(data).decode() for path, data in files.items()},
        }
    )


def check_ready(
    message: JSONValue, digest: str, tools: Sequence[ToolDeclaration]
) -> tuple[ToolSpec, ...]:
    """Write down what would be right with the worker's own words in it, and compare all of it."""
    try:
        said = [dict(one) for one in message["tools"]]  # type: ignore[index,call-overload,arg-type]
        expected = {
            "type": "ready",
            "protocol": PROTOCOL,
            "digest": digest,
            "tools": [_as_declared(tool, one) for tool, one in zip(tools, said, strict=True)],
        }
        same = same_json(expected, {**message, "tools": [_sorted(one) for one in said]})  # type: ignore[dict-item]
        for one in said:
            check_schema(one["inputSchema"])
    except (CourseError, KeyError, TypeError, ValueError, AttributeError):
        same = False
    if not same or not isinstance(message["tools"], tuple):  # type: ignore[index,call-overload]
        raise CourseError("MODULE_INVALID", "the worker does not offer what the manifest declares")
    return tuple(
        ToolSpec(tool.name, one["description"], one["inputSchema"], _strongest(tool))
        for tool, one in zip(tools, said, strict=True)
    )


def _as_declared(tool: ToolDeclaration, said: dict[str, Any]) -> dict[str, Any]:
    description = said["description"]
    if type(description) is not str or not 0 < len(description) <= MAX_DESCRIPTION:
        raise ValueError(tool.name)
    return {
        "name": tool.name,
        "description": description,
        "permissions": sorted(tool.permissions),
        "inputSchema": said["inputSchema"],
    }


def _sorted(said: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(said["permissions"], tuple):
        raise TypeError("permissions")
    return said | {"permissions": sorted(said["permissions"])}


def _strongest(tool: ToolDeclaration) -> Permission:
    found = [permission for permission in PERMISSIONS if permission in tool.permissions]
    return cast(Permission, found[-1])


def read_answer(message: JSONValue, request: str) -> ToolOutput:
    """One shape after the other."""
    match message:
        case {"type": "result", "id": id, "ok": False, "value": _} if len(message) == 4:
            if id == request and message["ok"] is False:
                details = {"code": "PLUGIN_FAILED"}
                return ToolOutput("the tool failed", is_error=True, details=details)
        case {"type": "result", "id": id, "ok": True, "value": value} if len(message) == 4:
            if id != request or message["ok"] is not True:
                raise CourseError("WORKER_FAILED", "another answer")
            match value:
                case str():
                    return ToolOutput(value)
                case {"content": str(content), "details": details} if len(value) == 2:
                    return ToolOutput(content, details=details)
    raise CourseError("WORKER_FAILED", "no answer")
