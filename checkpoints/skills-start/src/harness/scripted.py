"""A stand-in for the model that answers from a function, and a client that keeps every request."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from harness.messages import Block, tool_calls

Request = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScriptedBlock:
    """A content block with the one method that the harness asks of it."""

    fields: Block

    def model_dump(self, mode: str = "python") -> Block:
        return deepcopy(self.fields)


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """What `messages.create` returns."""

    content: list[ScriptedBlock]
    stop_reason: str


def scripted(reply: Callable[[Request], list[Block]]) -> Callable[..., ScriptedReply]:
    """A `create` function that answers each request with the blocks `reply` gives for it."""

    def create(**request: Any) -> ScriptedReply:
        content = reply(deepcopy(request))
        stop_reason = "tool_use" if tool_calls(content) else "end_turn"
        return ScriptedReply([ScriptedBlock(block) for block in content], stop_reason)

    return create


class RecordingClient:
    """A client around any `create`: it keeps a copy of each request, then passes it on."""

    def __init__(self, create: Callable[..., Any]) -> None:
        self.requests: list[Request] = []
        self._create = create

    @property
    def messages(self) -> RecordingClient:
        return self

    def create(self, **request: Any) -> Any:
        self.requests.append(deepcopy(request))
        return self._create(**request)
