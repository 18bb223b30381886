"""A stream of model events folded into one draft: whatever happens, exactly one ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, cast, get_args

from pi_course.errors import CourseError
from pi_course.framing import parse_sse
from pi_course.signals import AbortSignal
from pi_course.values import JSONValue, parse_json

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
    signal = signal or AbortSignal()
    parts: dict[int, StreamEvent] = {}
    reading = asyncio.ensure_future(_read(events, parts, on_delta, signal))
    watching = asyncio.ensure_future(signal.wait())
    try:
        await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        reading.cancel()
        await asyncio.wait({reading}, timeout=_GRACE_S)
    return _cut(parts, "aborted", signal.reason or None) if signal.aborted else reading.result()


def decode_events(chunks: Iterable[bytes]) -> Iterator[StreamEvent]:
    """Yield the events that a provider sends as server-sent events, one JSON object each.

    The object's fields are those of StreamEvent, type always among them. The last event yielded
    is always the first terminal one. Where there is none, because the stream is cut ("[DONE]" is
    an end as well), chunks raises, or a message is no StreamEvent, it is an error event; nothing
    is raised.
    """
    try:
        for message in parse_sse(chunks):
            if message.data == "[DONE]":
                break
            event = _event(parse_json(message.data))
            yield event
            if event.type in ("done", "error"):
                return
        yield StreamEvent("error", message=_CUT)
    except Exception as failure:
        yield StreamEvent("error", message=f"{type(failure).__name__}: {failure}")


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
        turn = len(self.contexts)
        self.contexts.append(context)
        return self._play(turn)

    async def _play(self, turn: int) -> AsyncIterator[StreamEvent]:
        if turn >= len(self._turns):
            raise CourseError("SCRIPT_ENDED", f"no turn {turn + 1} in a script of {turn}")
        for item in self._turns[turn]:
            await asyncio.sleep(0)
            if isinstance(item, Exception):
                raise item
            yield item


_CUT = "the stream ended without done or error"
_GRACE_S = 0.1


async def _read(
    events: AsyncIterator[StreamEvent],
    parts: dict[int, StreamEvent],
    on_delta: Callable[[AssistantDraft], None] | None,
    signal: AbortSignal,
) -> AssistantDraft:
    try:
        while not signal.aborted:
            event = await _pull(events)
            if event.type == "done":
                return _finished(parts, event.stop)
            problem = _fold(parts, event)
            if problem is not None:
                return _cut(parts, "error", problem)
            if event.type == "text_delta" and on_delta is not None:
                on_delta(_cut(parts, "aborted", None))
        return _cut(parts, "aborted", None)
    finally:
        with suppress(Exception):
            await cast(Any, events).aclose()


async def _pull(events: AsyncIterator[StreamEvent]) -> StreamEvent:
    try:
        return await anext(events)
    except StopAsyncIteration:
        return StreamEvent("error", message=_CUT)
    except Exception as failure:
        return StreamEvent("error", message=f"{type(failure).__name__}: {failure}")


def _fold(parts: dict[int, StreamEvent], event: StreamEvent) -> str | None:
    """Return None after adding event to its part, the sum of its events so far, or the problem."""
    part = parts.get(event.index, StreamEvent("start"))
    match event.type, part.type:
        case "start", _:
            return None
        case "error", _:
            return event.message or "the model failed"
        case "text_delta", "start" | "text_delta":
            parts[event.index] = replace(event, text=part.text + event.text)
            return None
        case "toolcall_start", "start" if event.id and event.name and not _taken(parts, event.id):
            parts[event.index] = replace(event, text="")
            return None
        case "toolcall_delta", "toolcall_start":
            parts[event.index] = replace(part, text=part.text + event.text)
            return None
    return f"{event.type} does not fit block {event.index}"


def _taken(parts: dict[int, StreamEvent], call_id: str) -> bool:
    return any(part.type == "toolcall_start" and part.id == call_id for part in parts.values())


def _finished(parts: dict[int, StreamEvent], stop: str) -> AssistantDraft:
    if stop not in ("stop", "tool_use", "length"):
        return _cut(parts, "error", f"done with the stop {stop!r}")
    blocks: list[DraftText | DraftCall] = []
    for part in _in_order(parts):
        if part.type == "text_delta":
            blocks.append(DraftText(part.text))
            continue
        try:
            arguments = parse_json(part.text or ("" if stop == "length" else "{}"))
        except CourseError:
            arguments = None
        if not isinstance(arguments, Mapping):
            ending: Stop = "length" if stop == "length" else "error"
            return _cut(parts, ending, f"the arguments of call {part.id} are incomplete")
        blocks.append(DraftCall(part.id, part.name, arguments))
    return AssistantDraft(tuple(blocks), cast(Stop, stop), None)


def _cut(parts: dict[int, StreamEvent], stop: Stop, error: str | None) -> AssistantDraft:
    """Return the draft of the texts alone: a call is never half made."""
    texts = [DraftText(part.text) for part in _in_order(parts) if part.type == "text_delta"]
    return AssistantDraft(tuple(texts), stop, error)


def _in_order(parts: dict[int, StreamEvent]) -> list[StreamEvent]:
    return [part for _, part in sorted(parts.items()) if part.text or part.type != "text_delta"]


def _event(value: JSONValue) -> StreamEvent:
    names = {field.name for field in fields(StreamEvent)}
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    fits = all(type(item) is (int if name == "index" else str) for name, item in given.items())
    if given.get("type") not in get_args(EventType) or not given.keys() <= names or not fits:
        raise CourseError("BAD_EVENT", "a message is no stream event")
    return StreamEvent(**given)
