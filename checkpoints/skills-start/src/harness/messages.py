"""What travels between the harness and the model: plain dictionaries, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Block = dict[str, Any]  # {"type": "text" | "tool_use" | "tool_result", …}
Message = dict[str, Any]  # {"role": "user" | "assistant", "content": str | list[Block]}


def tool_result(call: Block, content: str, *, is_error: bool = False) -> Block:
    """The block that answers `call`: it carries the call's id, so the model can pair the two."""
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": content,
        "is_error": is_error,
    }


def tool_calls(content: Sequence[Block]) -> list[Block]:
    """The tool requests among these blocks, in the order the model wrote them."""
    return [block for block in content if block["type"] == "tool_use"]


def text_of(content: Sequence[Block]) -> str:
    """The text blocks, one a line."""
    return "\n".join(block["text"] for block in content if block["type"] == "text")
