"""A stream of model events folded into one draft: whatever happens, exactly one ending."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pi_course.signals import AbortSignal
from pi_course.values import JSONValue

EventType = Literal["start", "text_delta", "toolcall_start", "toolcall_delta", "done", "error"]
Stop = Literal["stop", "tool_use", "length", "error", "aborted"]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One thing that a model says; which fields count depends on the type.

    start: the answer begins. text_delta: text is appended to text block index. toolcall_start: a
    call opens block index, with an id that no other call has and the name of a tool.
    toolcall_delta: text is a piece of the JSON of the arguments of the call at index. done: stop
    is "stop", "tool_use" or "length". error: message says what failed. The last two are terminal.
    """

    type: EventType
    index: int = 0
    text: str = ""
    id: str = ""
    name: str = ""
    stop: str = ""
    message: str = ""


class Model(Protocol):
    """Anything that answers a context with a stream of events."""

    def stream(self, context: Any, signal: AbortSignal) -> AsyncIterator[StreamEvent]:
        """Return the events of one answer; the iterator may raise, end early or never end."""
        ...


@dataclass(frozen=True, slots=True)
class DraftText:
    """Text, as far as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call whose arguments arrived whole: a frozen JSON object."""

    id: str
    name: str
    arguments: JSONValue


@dataclass(frozen=True, slots=True)
class AssistantDraft:
    """What came out of a stream: blocks in index order, why it stopped, and what went wrong."""

    blocks: tuple[DraftText | DraftCall, ...]
    stop: Stop
    error: str | None = None


async def collect(
    events: AsyncIterator[StreamEvent],
    on_delta: Callable[[AssistantDraft], None] | None = None,
    *,
    signal: AbortSignal | None = None,
) -> AssistantDraft:
    """Return the draft that events amount to; a failure of the model is in it, never raised.

    The first terminal event ends the draft: nothing after it is read, and events is closed.
    Calls are in the draft after done only, all of them or none: each call's arguments must be a
    whole JSON object. "" stands for {}, but not after "length", which may have cut anything off.
    A text block without text is left out.

    stop is what done said. It is "error", with the reason in error, when the stream raises, ends
    without a terminal event, breaks the rules of StreamEvent or leaves a call incomplete; after
    "length" an incomplete call leaves stop as it is, and the reason is in error. It is "aborted"
    as soon as signal is set, while an event is awaited too; error is then its reason, if any.

    on_delta gets, after every text_delta, the draft as it would be if it were aborted there.
    What on_delta raises, and cancellation from outside, pass through.
    """
    raise NotImplementedError("Lab 02.1 assistant draft 尚未实现")


def decode_events(chunks: Iterable[bytes]) -> Iterator[StreamEvent]:
    """Yield the events that a provider sends as server-sent events, one JSON object each.

    The object's fields are those of StreamEvent, type always among them. The last event yielded
    is always the first terminal one. Where there is none, because the stream is cut ("[DONE]" is
    an end as well), chunks raises, or a message is no StreamEvent, it is an error event; nothing
    is raised.
    """
    raise NotImplementedError("Lab 02.2 provider events 尚未实现")


class ScriptedModel:
    """A model that has its answers ready: one list of events a turn, for tests and offline runs."""

    def __init__(self, turns: Sequence[Sequence[StreamEvent | Exception]]) -> None:
        self._turns = [tuple(turn) for turn in turns]
        self.contexts: list[Any] = []

    def stream(self, context: Any, signal: AbortSignal) -> AsyncIterator[StreamEvent]:
        """Return the events of the next turn and append context to contexts.

        An Exception in the script is raised in its place. Other tasks get to run before every
        event. The signal is left to collect. A turn that is not in the script fails, once it is
        iterated, with the code SCRIPT_ENDED.
        """
        raise NotImplementedError("Lab 02.2 provider events 尚未实现")
