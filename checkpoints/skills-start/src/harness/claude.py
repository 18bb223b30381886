"""The model over the wire: one request of the Anthropic Messages API, one list of blocks back."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from harness.messages import Block, Message
from harness.tools import Tools, specs

KEY = "ANTHROPIC_API_KEY"
MAX_TOKENS = 1024


def ask_claude(
    client: Any, model: str, messages: Sequence[Message], tools: Tools, system: str
) -> list[Block]:
    """The reply's content as plain blocks.

    `client` is an anthropic.Anthropic or anything whose `messages.create` answers alike. A reply
    that ended for another reason than an answer or a tool request (cut short, refused) is a
    RuntimeError: half a request must not be executed.
    """
    reply = client.messages.create(
        model=model,
        max_tokens=MAX_TOKENS,
        system=system,
        tools=specs(tools),
        messages=list(messages),
    )
    if reply.stop_reason not in ("end_turn", "stop_sequence", "tool_use"):
        raise RuntimeError(f"the reply is not complete: stop_reason = {reply.stop_reason}")
    return [
        {key: value for key, value in block.model_dump(mode="json").items() if value is not None}
        for block in reply.content
    ]


def connect() -> Any:
    """A client for the real API, or RuntimeError if the key or the package is missing."""
    if not os.environ.get(KEY):
        raise RuntimeError(f"{KEY} is not set")
    try:
        return importlib.import_module("anthropic").Anthropic()
    except ModuleNotFoundError as error:
        raise RuntimeError("the anthropic package is not installed (extra: live)") from error
