"""The loop: ask the model, do what it asks for, show it what came of that, until it is done.

The only state is a growing list of messages, and every way out leaves a legal history behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pi_course.bench import Clock
from pi_course.errors import CourseError
from pi_course.messages import AssistantMessage, Message, UserMessage
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.stream import Model
from pi_course.tools import ToolExecutor
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
    raise NotImplementedError("Lab 07.1 model answer 尚未实现")


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
    raise NotImplementedError("Lab 07.2 agent loop 尚未实现")
