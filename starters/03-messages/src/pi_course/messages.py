"""The canonical conversation: three roles, four kinds of block, one JSON form.

Whatever stands above (history, tools, sessions, context) speaks in these frozen values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_course.stream import AssistantDraft
from pi_course.values import JSONValue, deep_freeze

STOPS = ("stop", "tool_use", "length", "error", "aborted")
ROLE_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "user": ("text", "image"),
    "assistant": ("text", "thinking", "tool_call"),
    "tool_result": ("text", "image"),
}


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text, in any role; it may be empty."""

    text: str
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What a model thought aloud before it answered; no part of the answer."""

    text: str
    type: Literal["thinking"] = field(default="thinking", init=False)


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture: a media type such as "image/png" and its base64 text, neither of them empty."""

    media_type: str
    data: str
    type: Literal["image"] = field(default="image", init=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool: id and name not empty, arguments an object, deep-frozen."""

    id: str
    name: str
    arguments: Mapping[str, JSONValue]
    type: Literal["tool_call"] = field(default="tool_call", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", deep_freeze(self.arguments))


Block: TypeAlias = TextBlock | ThinkingBlock | ImageBlock | ToolCall


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person said. timestamp, here and below: whole milliseconds, 0 or more."""

    content: tuple[Block, ...]
    timestamp: int
    role: Literal["user"] = field(default="user", init=False)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What a model said: no two calls with one id; stop is one of STOPS; error is text or None."""

    content: tuple[Block, ...]
    stop: str
    timestamp: int
    error: str | None = None
    role: Literal["assistant"] = field(default="assistant", init=False)


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The answer to one call, by its id *and* its name; details are for hosts, deep-frozen."""

    call_id: str
    tool_name: str
    content: tuple[Block, ...]
    is_error: bool
    details: JSONValue
    timestamp: int
    role: Literal["tool_result"] = field(default="tool_result", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", deep_freeze(self.details))


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def to_json(message: Message) -> dict[str, Any]:
    """The one JSON form of `message`: every field by its name, in plain dicts and lists.

    They share nothing with it; content is always a list of objects; None is null.
    """
    raise NotImplementedError("Lab 03.1 JSON form 尚未实现")


def from_json(value: object) -> Message:
    """The message whose JSON form is `value`, sharing nothing with it.

    Strict: a known role, all its fields and no other, each of its kind (True is no integer),
    the blocks that ROLE_BLOCKS gives the role, call ids that differ.
    CourseError INVALID_MESSAGE for everything else.
    """
    raise NotImplementedError("Lab 03.1 JSON form 尚未实现")


def validate_message(value: object) -> Message:
    """`value` as a legal message, by the rules of from_json: an instance or its JSON form.

    CourseError INVALID_MESSAGE when it is neither.
    """
    raise NotImplementedError("Lab 03.1 JSON form 尚未实现")


def text(s: str) -> TextBlock:
    """A text block that holds `s`."""
    return TextBlock(s)


def user(content: str | Iterable[Block], *, at: int) -> UserMessage:
    """A legal user message; a string means one text block. CourseError INVALID_MESSAGE."""
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")


def assistant(
    content: str | Iterable[Block], *, stop: str = "stop", at: int, error: str | None = None
) -> AssistantMessage:
    """A legal assistant message; a string means one text block. CourseError INVALID_MESSAGE."""
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")


def tool_result(
    call: ToolCall,
    blocks: str | Iterable[Block],
    *,
    is_error: bool = False,
    details: JSONValue = None,
    at: int,
) -> ToolResultMessage:
    """The legal answer to `call`, good or bad, paired with it; a string means one text block.

    CourseError INVALID_MESSAGE.
    """
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")


def assistant_from_draft(draft: AssistantDraft, *, at: int) -> AssistantMessage:
    """The message that a finished draft amounts to: its blocks in order, its stop, its error.

    A model's mistake is data and raises nothing: a draft that makes no legal message (two calls
    with one id, a call without a name, text that is no Unicode) becomes its text alone, with "?"
    for what is no Unicode, stop "error", and the reason as error.
    """
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")


def text_of(message: Message) -> str:
    """The text blocks of `message` joined by newlines; no thinking, images or calls."""
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The tool calls of `message` in order; none in a role that makes none."""
    raise NotImplementedError("Lab 03.2 message makers 尚未实现")
