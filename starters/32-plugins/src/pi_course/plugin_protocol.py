"""What a host and a worker say to each other, and what the host believes of it: nothing unchecked.

host → {"type": "hello", protocol, runtimeApi, digest, permissions, workspace, entries, files}
     ← {"type": "ready", protocol, digest, tools}   or   {"type": "refused", error}
host → {"type": "call", id, tool, arguments}   ← {"type": "result", id, ok, value}
host → {"type": "dispose"}                     ← {"type": "disposed"}
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from pi_course.plugin_loader import VerifiedPlugin
from pi_course.plugin_manifest import ToolDeclaration
from pi_course.schema import ToolSpec
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
    raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")


def read_answer(message: JSONValue, request: str) -> ToolOutput:
    """Return the output that a worker's line gives as the answer to the call `request`.

    {"type": "result", "id": `request`, "ok": true, "value": V}, where V is text or an object
    {"content": text, "details": JSON} → that content and these details. With "ok": false → an
    error output, details {"code": "PLUGIN_FAILED"}, in words of our own: what failed code says
    may hold paths and secrets. CourseError WORKER_FAILED for every other line.
    """
    raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")
