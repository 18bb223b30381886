"""Control: one conversation that can be watched, steered, continued and stopped from outside.

The loop stays as it is. All control goes through what it asks anyway: its inbox, its executor,
its signal and its emit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Literal

from pi_course.bench import Clock
from pi_course.errors import CourseError
from pi_course.history import repair_history
from pi_course.loop import RunEvent, RunLimits, RunResult, run_agent
from pi_course.messages import (
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    from_json,
    text_of,
    user,
)
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.stream import Model
from pi_course.tools import PASSING, ExecContext, ToolExecutor, error_result


class AgentSession:
    """One conversation with one model, one run at a time; its methods may be called by listeners.

    What users say waits in two queues: steering is said to the model before its next turn,
    follow-ups when the run would otherwise be final, one each time. A message's timestamp is the
    time at which it was said. What a run did not get round to waits for the next run.
    """

    def __init__(
        self,
        model: Model,
        executor: ToolExecutor,
        *,
        limits: RunLimits,
        clock: Clock,
        system_prompt: str = "",
        tools: Sequence[ToolSpec] = (),
        history: Iterable[Message] = (),
        mode: Literal["parallel", "sequential"] = "parallel",
        workspace: object | None = None,
        report: Callable[[BaseException], None] | None = None,
    ) -> None:
        """A session that continues `history`; each prompt is a run_agent with these settings.

        report gets what listeners raise; without it that is dropped. What report raises is, too.
        """
        self._model, self._executor, self._clock = model, executor, clock
        self._limits, self._mode, self._workspace = limits, mode, workspace
        self._system_prompt, self._tools = system_prompt, tuple(tools)
        self._report = report or (lambda error: None)
        self._record: list[Message] = list(history)
        self._steering: deque[UserMessage] = deque()
        self._follow_ups: deque[UserMessage] = deque()
        self._listeners: dict[int, Callable[[RunEvent], None]] = {}
        self._keys = count()
        self._signal: AbortSignal | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The record: history, and every message since as soon as it is there.

        It keeps what happened, also in runs that failed or were cancelled; the model is shown
        its repair_history.
        """
        return tuple(self._record)

    async def prompt(self, text: str) -> RunResult:
        """The result of one run that answers `text`; the users' messages are among the new ones.

        CourseError BUSY while another run goes on: that run does not notice, `text` is not kept.
        Cancellation passes through; the session can be prompted again.
        """
        if self._signal is not None:
            raise CourseError("BUSY", "a run is going on: steer, follow up or abort it")
        self._signal = AbortSignal()
        self._steering.append(self._said(text))
        try:
            return await run_agent(
                self._model,
                repair_history(self._record, at=self._clock.now_ms()).messages,
                self._execute,
                system_prompt=self._system_prompt,
                tools=self._tools,
                limits=self._limits,
                clock=self._clock,
                signal=self._signal,
                emit=self._emit,
                inbox=self._inbox,
                mode=self._mode,
                workspace=self._workspace,
            )
        finally:
            self._signal = None

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]:
        """A function that ends the subscription; calling it again does nothing.

        From now on listener(event) is called with every RunEvent, in the order of subscribing,
        and not once more after the subscription was ended, even while an event is delivered. A
        listener that raises disturbs neither the run nor the other listeners.
        """
        key = next(self._keys)
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def steer(self, text: str) -> None:
        """Say `text` to the model before its next turn.

        Calls that have not reached the executor by then do not run (in mode "sequential" those
        behind the one at work): each gets an error_result SKIPPED. Those at work finish and keep
        their results.
        """
        self._steering.append(self._said(text))

    def follow_up(self, text: str) -> None:
        """Say `text` to the model when it would otherwise be finished."""
        self._follow_ups.append(self._said(text))

    def abort(self, reason: str = "") -> tuple[str, ...]:
        """Stop the run and take back what still waits: its texts, steering first.

        The run ends with stop "aborted", every call with its result. Without a run, and the
        second time, there is nothing to stop and nothing waits.
        """
        waiting = (*self._steering, *self._follow_ups)
        self._steering.clear()
        self._follow_ups.clear()
        if self._signal is not None:
            self._signal.abort(reason)
        return tuple(text_of(message) for message in waiting)

    def _said(self, text: str) -> UserMessage:
        return user(text, at=self._clock.now_ms())

    def _inbox(self, idle: bool) -> tuple[UserMessage, ...]:
        if idle and not self._steering and self._follow_ups:
            return (self._follow_ups.popleft(),)
        said = tuple(self._steering)
        self._steering.clear()
        return said

    async def _execute(self, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        if self._steering:
            now = self._clock.now_ms()
            return error_result(call, "SKIPPED", "the user said something first; not run", at=now)
        return await self._executor(call, ctx)

    def _emit(self, event: RunEvent) -> None:
        if event.kind == "message_end" and "message" in event.data:
            self._record.append(from_json(event.data["message"]))
        for key, listener in tuple(self._listeners.items()):
            if key in self._listeners:
                try:
                    listener(event)
                except PASSING:
                    raise
                except BaseException as error:
                    with suppress(Exception):
                        self._report(error)
