"""Control: one conversation that can be watched, steered, continued and stopped from outside.

The loop stays as it is. All control goes through what it asks anyway: its inbox, its executor,
its signal and its emit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pi_course.bench import Clock
from pi_course.loop import RunEvent, RunLimits, RunResult
from pi_course.messages import Message
from pi_course.schema import ToolSpec
from pi_course.stream import Model
from pi_course.tools import ToolExecutor


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
        raise NotImplementedError("Lab 08.1 agent session 尚未实现")

    @property
    def messages(self) -> tuple[Message, ...]:
        """The record: history, and every message since as soon as it is there.

        It keeps what happened, also in runs that failed or were cancelled; the model is shown
        its repair_history.
        """
        raise NotImplementedError("Lab 08.1 agent session 尚未实现")

    async def prompt(self, text: str) -> RunResult:
        """The result of one run that answers `text`; the users' messages are among the new ones.

        CourseError BUSY while another run goes on: that run does not notice, `text` is not kept.
        Cancellation passes through; the session can be prompted again.
        """
        raise NotImplementedError("Lab 08.1 agent session 尚未实现")

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]:
        """A function that ends the subscription; calling it again does nothing.

        From now on listener(event) is called with every RunEvent, in the order of subscribing,
        and not once more after the subscription was ended, even while an event is delivered. A
        listener that raises disturbs neither the run nor the other listeners.
        """
        raise NotImplementedError("Lab 08.1 agent session 尚未实现")

    def steer(self, text: str) -> None:
        """Say `text` to the model before its next turn.

        Calls that have not reached the executor by then do not run (in mode "sequential" those
        behind the one at work): each gets an error_result SKIPPED. Those at work finish and keep
        their results.
        """
        raise NotImplementedError("Lab 08.2 steering and abort 尚未实现")

    def follow_up(self, text: str) -> None:
        """Say `text` to the model when it would otherwise be finished."""
        raise NotImplementedError("Lab 08.2 steering and abort 尚未实现")

    def abort(self, reason: str = "") -> tuple[str, ...]:
        """Stop the run and take back what still waits: its texts, steering first.

        The run ends with stop "aborted", every call with its result. Without a run, and the
        second time, there is nothing to stop and nothing waits.
        """
        raise NotImplementedError("Lab 08.2 steering and abort 尚未实现")
