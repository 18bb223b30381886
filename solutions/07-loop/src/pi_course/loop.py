"""The loop: ask the model, do what it asks for, show it what came of that, until it is done.

The only state is a growing list of messages, and every way out leaves a legal history behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pi_course.bench import Clock
from pi_course.errors import CourseError
from pi_course.history import check_history
from pi_course.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    assistant_from_draft,
    calls_of,
    text_of,
    to_json,
)
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.stream import AssistantDraft, Model, ScriptedModel, collect
from pi_course.tools import ExecContext, ToolExecutor, error_result, execute_batch
from pi_course.values import deep_freeze


@dataclass(frozen=True, slots=True)
class ModelContext:
    """All that a model is shown: nothing else reaches it."""

    system_prompt: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How often one run may ask the model, and how many calls it may hand to the executor.

    Both are whole numbers, 0 or more, else CourseError INVALID_LIMITS.
    """

    max_turns: int
    max_calls: int

    def __post_init__(self) -> None:
        if any(type(n) is not int or n < 0 for n in (self.max_turns, self.max_calls)):
            raise CourseError("INVALID_LIMITS", f"{self.max_turns!r}, {self.max_calls!r}")


RunStop: TypeAlias = Literal["final", "limit", "error", "aborted"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The messages that a run added to the history, why it ended, calls handed to the executor."""

    messages: tuple[Message, ...]
    stop: RunStop
    calls: int


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run; data is JSON and frozen.

    agent_start {}               agent_end {stop, calls}
    turn_start {turn}            turn_end {turn}                  turn: 1, 2, …
    message_start {role}         message_end {role, message}      message: its to_json
    tool_start {id, name}        tool_end {id, name, is_error}
    message_delta {text}         the text of the answer so far, inside its message
    tool_update {id, text}       progress that a tool reports, inside its tool
    """

    kind: str
    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", deep_freeze(self.data))


Emit: TypeAlias = Callable[[RunEvent], None]
Inbox: TypeAlias = Callable[[bool], Iterable[UserMessage]]


async def ask_model(
    model: Model, context: ModelContext, *, clock: Clock, signal: AbortSignal, emit: Emit
) -> AssistantMessage:
    """One answer of the model as one message, its timestamp the clock's time at the end.

    A model that fails, even before it streams, makes a message with stop "error"; an abort makes
    one with stop "aborted"; both keep the text that had come. Emits message_start, a
    message_delta after every piece of text, and message_end.
    """

    def message(draft: AssistantDraft) -> AssistantMessage:
        return assistant_from_draft(draft, at=clock.now_ms())

    def delta(draft: AssistantDraft) -> None:
        emit(RunEvent("message_delta", {"text": text_of(message(draft))}))

    with _span(emit, "message", role="assistant") as end:
        try:
            events = model.stream(context, signal)
        except Exception as error:
            events = ScriptedModel([[error]]).stream(context, signal)
        answer = message(await collect(events, delta, signal=signal))
        end["message"] = to_json(answer)
    return answer


async def run_agent(
    model: Model,
    history: Sequence[Message],
    executor: ToolExecutor,
    *,
    system_prompt: str = "",
    tools: Sequence[ToolSpec] = (),
    limits: RunLimits,
    clock: Clock,
    signal: AbortSignal | None = None,
    emit: Emit | None = None,
    inbox: Inbox | None = None,
    mode: Literal["parallel", "sequential"] = "parallel",
    workspace: object | None = None,
) -> RunResult:
    """The new messages, in order, why the run ended, and how many calls it made.

    One turn: the model is shown the system prompt, `history` + all new messages, and `tools`;
    its answer is recorded, then one result for each of its calls, in call order.
    execute_batch runs the calls in `mode`, with `workspace` in their context. After an answer
    with no calls the run is over.

    final    the model answered and wants nothing more
    limit    max_turns are used up, or the calls of an answer do not all fit: no turn would be
             left to read their results, or there are more than max_calls allows. Then none of
             them runs, each gets an error_result LIMIT. Or a text was cut: stop "length"
    error    the model failed; its message, stop "error", is the last one
    aborted  `signal` was aborted: the calls at work have their results, no turn follows, and
             none comes if it was so before the first one

    Calls in an answer with stop "length" are not run either; each gets an error_result
    TRUNCATED and the run goes on, so that the model can ask again.

    `inbox(idle)` hands over what users said meanwhile: asked with False before the first turn
    and after each turn with calls, with True when the run would be final, never when no turn is
    left. Its messages are recorded between turns; if it has any, the run goes on.

    CourseError INVALID_HISTORY, before anything happens: the messages up to the first turn are
    none, or end with an assistant message, or check_history finds a problem in them. Cancellation
    and what `emit` or `inbox` raise pass through. Events as in RunEvent, every start with its end.
    """
    signal = signal or AbortSignal()
    emit = emit or (lambda event: None)
    inbox = inbox or (lambda idle: ())
    executor = _observed(executor, emit)
    ctx = ExecContext(clock, signal, workspace)
    said = tuple(inbox(False))
    _require_open((*history, *said))
    new: list[Message] = []
    turn = calls = 0

    with _span(emit, "agent") as end:
        new += _told(emit, said)
        stop: RunStop | None = None
        if signal.aborted or limits.max_turns == 0:
            stop = "aborted" if signal.aborted else "limit"
        while stop is None:
            turn += 1
            turns_left = limits.max_turns - turn
            with _span(emit, "turn", turn=turn):
                shown = ModelContext(system_prompt, (*history, *new), tuple(tools))
                answer = await ask_model(model, shown, clock=clock, signal=signal, emit=emit)
                new.append(answer)
                wanted = calls_of(answer)
                fits = turns_left > 0 and calls + len(wanted) <= limits.max_calls
                if fits and answer.stop != "length":
                    calls += len(wanted)
                    results = await execute_batch(executor, wanted, ctx, mode=mode)
                else:
                    results = [_refused(call, fits, at=clock.now_ms()) for call in wanted]
                new += _told(emit, results)
            stop = _ending(answer, fits, signal)
            if turns_left and stop in (None, "final"):
                said = tuple(inbox(stop == "final"))
                new += _told(emit, said)
                stop = None if said else stop
        end.update(stop=stop, calls=calls)
    return RunResult(tuple(new), stop, calls)


def _require_open(history: Sequence[Message]) -> None:
    if not history or isinstance(history[-1], AssistantMessage):
        raise CourseError("INVALID_HISTORY", "there is nothing that the model could answer")
    if problems := check_history(history):
        raise CourseError("INVALID_HISTORY", f"to be repaired first: {problems[0]}")


def _ending(answer: AssistantMessage, fits: bool, signal: AbortSignal) -> RunStop | None:
    """Why the run is over after this answer; None while there is something to go on with."""
    if answer.stop == "error":
        return "error"
    if answer.stop == "aborted" or signal.aborted:
        return "aborted"
    if calls_of(answer):
        return None if fits else "limit"
    return "limit" if answer.stop == "length" else "final"


def _refused(call: ToolCall, fits: bool, *, at: int) -> ToolResultMessage:
    if fits:
        return error_result(call, "TRUNCATED", "the answer was cut; not run, ask again", at=at)
    return error_result(call, "LIMIT", "the limits of this run are used up; not run", at=at)


@contextmanager
def _span(emit: Emit, kind: str, **data: Any) -> Iterator[dict[str, Any]]:
    """The start event now, and the end event, with what the body adds, however the body ends."""
    emit(RunEvent(f"{kind}_start", data))
    try:
        yield data
    finally:
        emit(RunEvent(f"{kind}_end", data))


def _told(emit: Emit, messages: Iterable[Message]) -> Iterator[Message]:
    """The messages, each one told to the listeners as it is taken."""
    for message in messages:
        with _span(emit, "message", role=message.role) as end:
            end["message"] = to_json(message)
        yield message


def _observed(executor: ToolExecutor, emit: Emit) -> ToolExecutor:
    async def observed(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        with _span(emit, "tool", id=call.id, name=call.name) as end:

            def update(text: str) -> None:
                if "is_error" not in end:  # a tool that was given up may still talk
                    emit(RunEvent("tool_update", {"id": call.id, "text": text}))

            try:
                result = await executor(call, replace(ctx, update=update))
                end["is_error"] = result.is_error
                return result
            finally:
                end.setdefault("is_error", True)

    return observed
