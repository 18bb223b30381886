"""Legal conversations: what is wrong with a history, a history put right, a history for the wire.

One law: every call is followed directly by exactly one result, in call order, and no other
results exist. One rule of ownership: a result answers the nearest call before it that has its
id and its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias, cast

from pi_course.errors import CourseError
from pi_course.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    calls_of,
    tool_result,
)
from pi_course.values import FrozenDict, canonical_json, deep_freeze, thaw

SYNTHETIC = deep_freeze({"code": "MISSING_RESULT"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One breach of the law, at messages[index]; call_id is "" where no call is concerned.

    UNREPLAYABLE      an assistant message that ended in "error" or "aborted"
    ORPHAN_RESULT     a result that answers no call, or a call of an unreplayable message
    DUPLICATE_RESULT  a result whose call keeps another one: the first real one, else the first
    MISPLACED_RESULT  a kept result that follows the wrong message (what is dropped left out): the
                      right one is the kept result of the call before, else the assistant message
    MISSING_RESULT    a call that has no result (index is that of the assistant message)
    """

    code: str
    index: int
    call_id: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A legal history, and how many problems of each code that occurred were put right for it."""

    messages: tuple[Message, ...]
    counts: Mapping[str, int]


def check_history(messages: Iterable[Message]) -> list[Problem]:
    """Every problem of the history, by index, then in call order; [] when a provider may see it."""
    history = tuple(messages)
    kept, problems = _pair(history)
    standing = [place for place in _legal_order(history, kept) if isinstance(place, int)]
    found_after, wanted_after = _predecessors(sorted(standing)), _predecessors(standing)
    for (owner, call_id), index in kept.items():
        if index is None:
            problems.append(Problem("MISSING_RESULT", owner, call_id))
        elif found_after[index] != wanted_after[index]:
            problems.append(Problem("MISPLACED_RESULT", index, call_id))
    return sorted(problems, key=lambda problem: problem.index)


def repair_history(messages: Iterable[Message], *, at: int = 0) -> Repair:
    """A legal history made of `messages`, which stay as they are; repairing it again is a no-op.

    Unreplayable messages go, with their results; orphans and duplicates go; results move up to
    their calls, in call order; a call without a result gets an error result with details
    SYNTHETIC and timestamp `at` (milliseconds). Everything else keeps its order.
    """
    history = tuple(messages)
    kept, _ = _pair(history)
    repaired = tuple(
        history[place] if isinstance(place, int) else _no_result(place, at)
        for place in _legal_order(history, kept)
    )
    counts = Counter(problem.code for problem in check_history(history))
    return Repair(repaired, cast("Mapping[str, int]", FrozenDict(counts)))


def to_provider(messages: Iterable[Message], dialect: str) -> list[dict[str, Any]]:
    """The history as the request of one provider wants it: fresh plain dicts, nothing for hosts.

    "chat", text only:
        {"role": "user", "content": text}
        {"role": "assistant", "content": text, "tool_calls": [call, …]}   the key only with calls
            call = {"id", "type": "function", "function": {"name", "arguments": canonical JSON}}
        {"role": "tool", "tool_call_id", "content": text}                 one for each result
    "blocks", the roles "user" and "assistant" in strict alternation:
        {"role", "content": [block, …]}   of consecutive messages of one role, results as "user"
            {"type": "text", "text"}, {"type": "image", "media_type", "data"},
            {"type": "tool_use", "id", "name", "input": arguments},
            {"type": "tool_result", "tool_use_id", "is_error", "content": [block, …]}

    Thinking is never sent; "chat" joins texts with newlines and shows an image as
    "[image MEDIA_TYPE]". An empty text, and a message left with nothing to say, are not sent;
    a result always is. CourseError UNKNOWN_DIALECT, or INVALID_HISTORY when check_history
    finds a problem.
    """
    if dialect not in _DIALECTS:
        raise CourseError("UNKNOWN_DIALECT", f"{dialect!r} is none of {', '.join(_DIALECTS)}")
    history = tuple(messages)
    if problems := check_history(history):
        raise CourseError("INVALID_HISTORY", f"to be repaired first: {problems[0]}")
    return _DIALECTS[dialect](history)


_Kept: TypeAlias = dict[tuple[int, str], int | None]


def _pair(history: tuple[Message, ...]) -> tuple[_Kept, list[Problem]]:
    """The index of the one result of each replayable call (owner's index, id); what is surplus.

    Unreplayable messages own results too: those must not go looking for an older call.
    """
    nearest: dict[tuple[str, str], int] = {}
    answers: dict[tuple[int, str], list[int]] = {}
    surplus: list[Problem] = []
    for index, message in enumerate(history):
        if not _replayable(message):
            surplus.append(Problem("UNREPLAYABLE", index, ""))
        for call in calls_of(message):
            nearest[call.id, call.name] = index
            if _replayable(message):
                answers[index, call.id] = []
        if isinstance(message, ToolResultMessage):
            owner = nearest.get((message.call_id, message.tool_name), index)
            if (owner, message.call_id) in answers:
                answers[owner, message.call_id].append(index)
            else:
                surplus.append(Problem("ORPHAN_RESULT", index, message.call_id))

    kept: _Kept = {}
    for (owner, call_id), found in answers.items():
        best = min(found, key=lambda index: (_is_synthetic(history[index]), index), default=None)
        kept[owner, call_id] = best
        surplus += [Problem("DUPLICATE_RESULT", i, call_id) for i in found if i != best]
    return kept, surplus


def _legal_order(history: tuple[Message, ...], kept: _Kept) -> Iterator[int | ToolCall]:
    """The legal history as indices, with the call itself where a result has to be made up."""
    for index, message in enumerate(history):
        if _replayable(message) and not isinstance(message, ToolResultMessage):
            yield index
            for call in calls_of(message):
                answer = kept[index, call.id]
                yield call if answer is None else answer


def _predecessors(indices: list[int]) -> dict[int, int]:
    return dict(zip(indices, [-1, *indices], strict=False))


def _replayable(message: Message) -> bool:
    return not (isinstance(message, AssistantMessage) and message.stop in ("error", "aborted"))


def _is_synthetic(message: Message) -> bool:
    return isinstance(message, ToolResultMessage) and message.details == SYNTHETIC


def _no_result(call: ToolCall, at: int) -> ToolResultMessage:
    said = "No result was recorded for this call; it may or may not have run."
    return tool_result(call, said, is_error=True, details=SYNTHETIC, at=at)


def _chat(history: tuple[Message, ...]) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for message in history:
        said = "\n".join(filter(None, map(_as_text, message.content)))
        calls = [_chat_call(call) for call in calls_of(message)]
        if isinstance(message, ToolResultMessage):
            wire.append({"role": "tool", "tool_call_id": message.call_id, "content": said})
        elif calls:
            wire.append({"role": message.role, "content": said, "tool_calls": calls})
        elif said:
            wire.append({"role": message.role, "content": said})
    return wire


def _as_text(block: Block) -> str:
    if isinstance(block, ImageBlock):
        return f"[image {block.media_type}]"
    return block.text if isinstance(block, TextBlock) else ""


def _chat_call(call: ToolCall) -> dict[str, Any]:
    arguments = canonical_json(call.arguments).decode()
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _alternating(history: tuple[Message, ...]) -> list[dict[str, Any]]:
    spoken = [
        ("assistant" if isinstance(message, AssistantMessage) else "user", block)
        for message in history
        for block in _wire_blocks(message)
    ]
    return [
        {"role": role, "content": [block for _, block in turn]}
        for role, turn in groupby(spoken, key=itemgetter(0))
    ]


def _wire_blocks(message: Message) -> list[dict[str, Any]]:
    blocks = [wire for block in message.content if (wire := _wire_block(block))]
    if not isinstance(message, ToolResultMessage):
        return blocks
    answer = {"tool_use_id": message.call_id, "is_error": message.is_error, "content": blocks}
    return [{"type": "tool_result", **answer}]


def _wire_block(block: Block) -> dict[str, Any] | None:
    match block:
        case TextBlock(text) if text:
            return {"type": "text", "text": text}
        case ImageBlock(media_type, data):
            return {"type": "image", "media_type": media_type, "data": data}
        case ToolCall(id, name, arguments):
            return {"type": "tool_use", "id": id, "name": name, "input": thaw(arguments)}
        case _:
            return None


_DIALECTS: Mapping[str, Callable[[tuple[Message, ...]], list[dict[str, Any]]]] = {
    "chat": _chat,
    "blocks": _alternating,
}
