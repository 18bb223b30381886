"""The tool git_status: which files of the workspace are changed, staged or new."""

from __future__ import annotations

from typing import Any

from ..command import git

definition = {
    "name": "git_status",
    "description": "List changed, staged and untracked files of the workspace.",
    "permissions": ["read", "execute"],
    "inputSchema": {
        "type": "object",
        "properties": {"untracked": {"type": "boolean", "description": "list new files too"}},
    },
}


def execute(arguments: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return one line for each file, as git status --porcelain writes it."""
    untracked = "normal" if arguments.get("untracked", True) else "no"
    words = ("status", "--porcelain=v1", "-z", f"--untracked-files={untracked}")
    entries = git(context.workspace, context.scratch, *words).split("\0")[:-1]
    return {"content": "\n".join(entries) or "clean", "details": {"entries": entries}}
