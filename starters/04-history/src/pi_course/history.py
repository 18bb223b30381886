"""Legal conversations: what is wrong with a history, a history put right, a history for the wire.

One law: every call is followed directly by exactly one result, in call order, and no other
results exist. One rule of ownership: a result answers the nearest call before it that has its
id and its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pi_course.messages import Message
from pi_course.values import deep_freeze

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
    raise NotImplementedError("Lab 04.1 history repair 尚未实现")


def repair_history(messages: Iterable[Message], *, at: int = 0) -> Repair:
    """A legal history made of `messages`, which stay as they are; repairing it again is a no-op.

    Unreplayable messages go, with their results; orphans and duplicates go; results move up to
    their calls, in call order; a call without a result gets an error result with details
    SYNTHETIC and timestamp `at` (milliseconds). Everything else keeps its order.
    """
    raise NotImplementedError("Lab 04.1 history repair 尚未实现")


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
    raise NotImplementedError("Lab 04.2 provider dialects 尚未实现")
