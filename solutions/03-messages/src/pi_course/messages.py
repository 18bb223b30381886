"""The canonical conversation: three roles, four kinds of block, one JSON form.

Whatever stands above (history, tools, sessions, context) speaks in these frozen values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

from pi_course.errors import CourseError
from pi_course.stream import AssistantDraft, DraftCall, DraftText
from pi_course.values import JSONValue, deep_freeze, thaw

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
_M = TypeVar("_M", UserMessage, AssistantMessage, ToolResultMessage)


def to_json(message: Message) -> dict[str, Any]:
    """The one JSON form of `message`: every field by its name, in plain dicts and lists.

    They share nothing with it; content is always a list of objects; None is null.
    """
    return cast(dict[str, Any], thaw(asdict(message)))


def from_json(value: object) -> Message:
    """The message whose JSON form is `value`, sharing nothing with it.

    Strict: a known role, all its fields and no other, each of its kind (True is no integer),
    the blocks that ROLE_BLOCKS gives the role, call ids that differ.
    CourseError INVALID_MESSAGE for everything else.
    """
    try:
        frozen = deep_freeze(value)
    except CourseError as problem:
        raise CourseError("INVALID_MESSAGE", problem.message) from problem
    message = _build("role", _ROLES, frozen)
    allowed = {name: _BLOCKS[name] for name in ROLE_BLOCKS[message.role]}
    content = tuple(_build("type", allowed, block) for block in message.content)
    ids = [block.id for block in content if isinstance(block, ToolCall)]
    if len(set(ids)) < len(ids):
        raise CourseError("INVALID_MESSAGE", "two calls of one message have the same id")
    return cast(Message, replace(message, content=content))


def validate_message(value: object) -> Message:
    """`value` as a legal message, by the rules of from_json: an instance or its JSON form.

    CourseError INVALID_MESSAGE when it is neither.
    """
    return from_json(asdict(value) if isinstance(value, Message) else value)


def text(s: str) -> TextBlock:
    """A text block that holds `s`."""
    return TextBlock(s)


def user(content: str | Iterable[Block], *, at: int) -> UserMessage:
    """A legal user message; a string means one text block. CourseError INVALID_MESSAGE."""
    return _legal(UserMessage(_blocks(content), at))


def assistant(
    content: str | Iterable[Block], *, stop: str = "stop", at: int, error: str | None = None
) -> AssistantMessage:
    """A legal assistant message; a string means one text block. CourseError INVALID_MESSAGE."""
    return _legal(AssistantMessage(_blocks(content), stop, at, error))


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
    return _legal(ToolResultMessage(call.id, call.name, _blocks(blocks), is_error, details, at))


def assistant_from_draft(draft: AssistantDraft, *, at: int) -> AssistantMessage:
    """The message that a finished draft amounts to: its blocks in order, its stop, its error.

    A model's mistake is data and raises nothing: a draft that makes no legal message (two calls
    with one id, a call without a name, text that is no Unicode) becomes its text alone, with "?"
    for what is no Unicode, stop "error", and the reason as error.
    """
    try:
        return assistant(map(_block, draft.blocks), stop=draft.stop, at=at, error=draft.error)
    except CourseError as problem:
        said = [b.text.encode("utf-8", "replace") for b in draft.blocks if isinstance(b, DraftText)]
        texts = [TextBlock(one.decode("utf-8")) for one in said]
        return assistant(texts, stop="error", at=at, error=problem.message)


def text_of(message: Message) -> str:
    """The text blocks of `message` joined by newlines; no thinking, images or calls."""
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The tool calls of `message` in order; none in a role that makes none."""
    return tuple(block for block in message.content if isinstance(block, ToolCall))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


_RULES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "name", "call_id", "tool_name", "media_type", "data"), _is_name),
    "text": lambda value: isinstance(value, str),
    "arguments": lambda value: isinstance(value, Mapping),
    "content": lambda value: isinstance(value, tuple),
    "timestamp": lambda value: type(value) is int and value >= 0,
    "stop": lambda value: value in STOPS,
    "error": lambda value: value is None or isinstance(value, str),
    "is_error": lambda value: isinstance(value, bool),
    "details": lambda value: True,
}
_ROLES: Mapping[str, type[Any]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool_result": ToolResultMessage,
}
_BLOCKS: Mapping[str, type[Any]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "image": ImageBlock,
    "tool_call": ToolCall,
}


def _build(tag: str, classes: Mapping[str, type[Any]], value: JSONValue) -> Any:
    """An instance of the class that value[tag] names, made of exactly that class's fields."""
    if not isinstance(value, Mapping) or value.get(tag) not in tuple(classes):
        raise CourseError("INVALID_MESSAGE", f"not an object with {tag} {' or '.join(classes)}")
    cls = classes[str(value[tag])]
    if wrong := {f.name for f in fields(cls)} ^ set(value):
        raise CourseError("INVALID_MESSAGE", f"{value[tag]}: missing or unknown {sorted(wrong)}")
    values = {f.name: value[f.name] for f in fields(cls) if f.init}
    if wrong := {name for name in values if not _RULES[name](values[name])}:
        raise CourseError("INVALID_MESSAGE", f"{value[tag]}: no legal value for {sorted(wrong)}")
    return cls(**values)


def _block(draft: DraftText | DraftCall) -> Block:
    if isinstance(draft, DraftText):
        return TextBlock(draft.text)
    return ToolCall(draft.id, draft.name, cast(Mapping[str, JSONValue], draft.arguments))


def _blocks(content: str | Iterable[Block]) -> tuple[Block, ...]:
    return (TextBlock(content),) if isinstance(content, str) else tuple(content)


def _legal(message: _M) -> _M:
    return cast(_M, validate_message(message))
