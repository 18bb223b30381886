"""What a host and a worker say to each other, and what the host believes of it: nothing unchecked.

host → {"type": "hello", protocol, runtimeApi, digest, permissions, workspace, entries, files}
     ← {"type": "ready", protocol, digest, tools}   or   {"type": "refused", error}
host → {"type": "call", id, tool, arguments}   ← {"type": "result", id, ok, value}
host → {"type": "dispose"}                     ← {"type": "disposed"}
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

from pi_course.errors import CourseError
from pi_course.plugin_loader import VerifiedPlugin
from pi_course.plugin_manifest import PERMISSIONS, ToolDeclaration
from pi_course.schema import Permission, ToolSpec, check_schema
from pi_course.tools import ToolOutput
from pi_course.values import JSONValue, deep_freeze

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
    """Return the specs of `tools`, when the first line of a worker agrees with the manifest.

    It has to be {"type": "ready", "protocol": PROTOCOL, "digest": `digest`, "tools": [...]} and
    nothing else, with one {"name", "description", "permissions", "inputSchema"} for each tool in
    the order of the manifest: the same name, the same permissions in any order, a description
    of 1 to MAX_DESCRIPTION characters, and an inputSchema that check_schema accepts. The
    permission of a spec is the strongest that its tool declares.
    CourseError MODULE_INVALID otherwise, which names the tool and nothing the worker said.
    """
    expected = {"type": "ready", "protocol": PROTOCOL, "digest": digest}
    said = dict(message) if isinstance(message, Mapping) else {}
    defined = said.pop("tools", None)
    if said != expected or type(said["protocol"]) is not int:
        _refuse("the worker did not answer the handshake with this plugin")
    if not isinstance(defined, tuple) or len(defined) != len(tools):
        _refuse("the worker does not define the declared tools")
    return tuple(_spec(tool, one) for tool, one in zip(tools, defined, strict=True))


def read_answer(message: JSONValue, request: str) -> ToolOutput:
    """Return the output that a worker's line gives as the answer to the call `request`.

    {"type": "result", "id": `request`, "ok": true, "value": V}, where V is text or an object
    {"content": text, "details": JSON} → that content and these details. With "ok": false → an
    error output, details {"code": "PLUGIN_FAILED"}, in words of our own: what failed code says
    may hold paths and secrets. CourseError WORKER_FAILED for every other line.
    """
    fields = dict(message) if isinstance(message, Mapping) else {}
    ok, value = fields.pop("ok", None), fields.pop("value", None)
    if fields != {"type": "result", "id": request} or not isinstance(ok, bool):
        raise CourseError("WORKER_FAILED", "the worker answered something that was not asked")
    if not ok:
        details = {"code": "PLUGIN_FAILED"}
        return ToolOutput("PLUGIN_FAILED: the tool failed", is_error=True, details=details)
    if isinstance(value, str):
        return ToolOutput(value)
    if isinstance(value, Mapping) and set(value) == {"content", "details"}:
        content = value["content"]
        if isinstance(content, str):
            return ToolOutput(content, details=value["details"])
    raise CourseError("WORKER_FAILED", "the tool's value is neither text nor content and details")


def _spec(tool: ToolDeclaration, said: JSONValue) -> ToolSpec:
    keys = {"name", "description", "permissions", "inputSchema"}
    if not isinstance(said, Mapping) or set(said) != keys or said["name"] != tool.name:
        _refuse(f"{tool.name}: is not defined under that name")
    description, permissions = said["description"], said["permissions"]
    if not isinstance(description, str) or not 1 <= len(description) <= MAX_DESCRIPTION:
        _refuse(f"{tool.name}: needs a description")
    if not isinstance(permissions, tuple) or sorted(map(str, permissions)) != sorted(
        tool.permissions
    ):
        _refuse(f"{tool.name}: defines other permissions than the manifest declares")
    try:
        check_schema(said["inputSchema"])
    except CourseError:
        _refuse(f"{tool.name}: has an input schema that cannot be checked")
    schema = cast("Mapping[str, JSONValue]", said["inputSchema"])
    strongest_one = cast(Permission, max(tool.permissions, key=PERMISSIONS.index))
    return ToolSpec(tool.name, description, schema, strongest_one)


def _refuse(why: str) -> NoReturn:
    raise CourseError("MODULE_INVALID", why)
