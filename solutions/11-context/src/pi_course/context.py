"""What a model gets to see: the newest part of a session that fits into its window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pi_course.errors import CourseError
from pi_course.history import repair_history
from pi_course.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    calls_of,
    from_json,
    user,
)
from pi_course.schema import ToolSpec
from pi_course.sessions import Entry
from pi_course.values import JSONValue, canonical_json

IMAGE_TOKENS = 1_200
MESSAGE_TOKENS = 4

Estimator: TypeAlias = Callable[[object], int]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What the payload of a "compaction" entry says: `summary` tells all that came before.

    What came before is every entry of the path before the one with the id `first_kept_id`.
    """

    summary: str
    first_kept_id: str


@dataclass(frozen=True, slots=True)
class Projection:
    """What one request shows a model, and what of the path it does not show.

    `used` is the estimate for prompt, tools and messages together. `dropped_entry_ids` name, in
    path order, the "message" entries left out, and `reason` is None if there are none, else the
    first of these that is true: "budget", a turn had no room; "compaction", a summary stands for
    them; "repair", they are what repair_history takes away.
    """

    system_prompt: str
    messages: tuple[Message, ...]
    used: int
    dropped_entry_ids: tuple[str, ...]
    reason: str | None


def estimate_tokens(value: object) -> int:
    """Return about how many tokens `value` takes: a third of its UTF-8 bytes, rounded up.

    That is near the truth for Chinese and on the safe side for English. `value` is a text, a
    block, a message (its blocks and MESSAGE_TOKENS), a tool's spec, or JSON. An image counts
    IMAGE_TOKENS, however many bytes it has.
    """
    match value:
        case ImageBlock():
            return IMAGE_TOKENS
        case TextBlock(text=text) | ThinkingBlock(text=text) | str(text):
            return -(-len(text.encode("utf-8", "replace")) // 3)
        case ToolCall(name=name, arguments=arguments):
            return estimate_tokens(name) + estimate_tokens(arguments)
        case ToolSpec(name=name, description=description, input_schema=schema):
            return sum(map(estimate_tokens, (name, description, schema)))
        case UserMessage() | AssistantMessage() | ToolResultMessage():
            return MESSAGE_TOKENS + sum(map(estimate_tokens, value.content))
        case _:
            return estimate_tokens(canonical_json(value).decode())


def build_context(
    path: Sequence[Entry],
    *,
    max_tokens: int,
    system_prompt: str = "",
    tools: Sequence[ToolSpec] = (),
    reserved_output: int = 0,
    safety_margin: int = 0,
    estimate_tokens: Estimator = estimate_tokens,
) -> Projection:
    """Return the newest turns of `path` for which used + reserve + margin ≤ max_tokens.

    With room for everything the messages are those of repair_history(active_messages(path)): a
    legal history. A turn is a user message with all that follows it up to the next one; a turn is
    shown whole or not at all. Always there, or CONTEXT_TOO_SMALL: the system prompt, unchanged;
    the tools; the newest turn; the summary of the last compaction, as a user message before all
    others. Then older turns, the newest first, up to the first one that has no room.

    The last compaction on the path hides what is before the entry that it names, other summaries
    too. But an answer with calls and the results of these calls are never parted: named in the
    middle of them, it keeps them all.

    `estimate_tokens` is asked about the prompt, unless that is empty, each tool and each message;
    the answers are added up. Nothing else is looked at: same arguments, same projection. Codes
    besides: UNKNOWN_ENTRY (a compaction names no entry that is before it on this path),
    INVALID_ENTRY (its payload), INVALID_BUDGET (a size or an estimate is no int from 0 up).
    """

    def price(part: object) -> int:
        return _size(estimate_tokens(part))

    room = _size(max_tokens) - _size(reserved_output) - _size(safety_margin)
    start, summary = _last_compaction(path)
    turns = _turns(path, start)
    used = sum(map(price, [*filter(None, [system_prompt]), *tools, *summary]))
    oldest = len(turns)
    while oldest and used + (more := sum(map(price, turns[oldest - 1].messages))) <= room:
        used, oldest = used + more, oldest - 1
    if used > room or oldest == len(turns) > 0:
        raise CourseError("CONTEXT_TOO_SMALL", f"{room} tokens are not enough for the least")

    shown = turns[oldest:]
    places = {place for turn in shown for place in turn.places}
    dropped = tuple(
        entry.id
        for place, entry in enumerate(path)
        if entry.kind == "message" and place not in places
    )
    reason = "budget" if oldest else "compaction" if summary else "repair"
    messages = (*summary, *(message for turn in shown for message in turn.messages))
    return Projection(system_prompt, messages, used, dropped, reason if dropped else None)


class _Part(NamedTuple):
    """Messages that stay together, and the places on the path where they were recorded."""

    places: list[int]
    messages: list[Message]


def _last_compaction(path: Sequence[Entry]) -> tuple[int, tuple[Message, ...]]:
    """The place where recorded messages begin to count, and the summary before them, if any."""
    for place in reversed(range(len(path))):
        if path[place].kind == "compaction":
            told = _compaction(path[place].payload)
            for start in range(place):
                if path[start].id == told.first_kept_id:
                    said = f"Summary of the conversation so far:\n{told.summary}"
                    return start, (user(said, at=path[place].at),)
            raise CourseError("UNKNOWN_ENTRY", f"{told.first_kept_id!r} is not before it here")
    return 0, ()


def _compaction(payload: JSONValue) -> Compaction:
    match payload:
        case {"summary": str(summary), "first_kept_id": str(first), **rest} if not rest:
            return Compaction(summary, first)
    raise CourseError("INVALID_ENTRY", "a compaction has a summary and a first_kept_id")


def _turns(path: Sequence[Entry], start: int) -> list[_Part]:
    """The turns, oldest first, of the groups that reach the place `start` or come after it."""
    turns: list[_Part] = []
    for group in _groups(path):
        messages = repair_history(group.messages).messages
        if messages and group.places[-1] >= start:
            if not turns or isinstance(messages[0], UserMessage):
                turns.append(_Part([], []))
            turns[-1].places.extend(group.places)
            turns[-1].messages.extend(messages)
    return turns


def _groups(path: Sequence[Entry]) -> list[_Part]:
    """Each user message alone, and each answer with the results that it owns (see history)."""
    groups: list[_Part] = []
    owners: dict[tuple[str, str], _Part] = {}
    for place, entry in enumerate(path):
        if entry.kind == "message":
            message = from_json(entry.payload)
            if not isinstance(message, ToolResultMessage):
                groups.append(_Part([place], [message]))
                owners |= {(call.id, call.name): groups[-1] for call in calls_of(message)}
            elif owner := owners.get((message.call_id, message.tool_name)):
                owner.places.append(place)
                owner.messages.append(message)
    return groups


def _size(value: int) -> int:
    if type(value) is not int or value < 0:
        raise CourseError("INVALID_BUDGET", f"{value!r} is not a number of tokens")
    return value
