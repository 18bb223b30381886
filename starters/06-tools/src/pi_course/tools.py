"""Tools: the list of what an agent may do, and the one road on which it is done.

A tool call is a wish of the model. Whatever becomes of it (done, refused, failed, too slow, cut
off) ends as one value: the ToolResultMessage that carries the id and the name of the call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pi_course.bench import Clock
from pi_course.messages import Block, ToolCall, ToolResultMessage, tool_result
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.values import JSONValue

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ExecContext:
    """What a tool may use while it runs.

    signal aborts the whole run; update("…") reports progress and may be None; call_id is filled
    in by the executor.
    """

    clock: Clock
    signal: AbortSignal
    workspace: object | None = None
    update: Callable[[str], None] | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers: text, or a tuple of text and image blocks; details are for the host."""

    content: str | tuple[Block, ...]
    is_error: bool = False
    details: JSONValue = None


@dataclass(frozen=True, slots=True)
class Tool:
    """What the model is told (spec) and what then happens (execute, a coroutine function)."""

    spec: ToolSpec
    execute: Callable[[dict[str, Any], ExecContext], Awaitable[str | ToolOutput]]


ToolExecutor: TypeAlias = Callable[[ToolCall, ExecContext], Awaitable[ToolResultMessage]]


class ToolRegistry:
    """Tools by name, in the order in which they were registered; never changed by half."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """A registry of `tools`; the errors are those of register_all."""
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")

    def register(self, tool: Tool) -> None:
        """List `tool` after all others; the errors are those of register_all."""
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")

    def register_all(self, tools: Iterable[Tool]) -> None:
        """List all `tools` in their order or, on an error, not one of them.

        CourseError INVALID_TOOL: not a Tool, a name that TOOL_NAME does not match from end to
        end, an execute that cannot be called, or an input_schema that check_schema refuses.
        CourseError DUPLICATE_TOOL: a name that is taken, here or earlier in `tools`; the tool
        that had it stays.
        """
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")

    def get(self, name: str) -> Tool | None:
        """The tool of that exact name, or None."""
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration."""
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")

    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told of the tools, in the order of registration."""
        raise NotImplementedError("Lab 06.1 tool registry 尚未实现")


def create_executor(
    registry: ToolRegistry, *, timeout: float | None = None, max_output: int = 20_000
) -> ToolExecutor:
    """An executor: a coroutine function (call, ctx) that returns one result paired with `call`.

    It never raises, except that cancellation and KeyboardInterrupt pass through. The tool is
    looked up when the call comes; it gets a fresh plain copy of the checked arguments, and `ctx`
    with its call_id set. What it answers is the result; its timestamp is the clock's time at the
    end. What goes wrong is an error result with details {"code": …}:

    UNKNOWN_TOOL       no tool has that name; the text lists the names that exist
    INVALID_ARGUMENTS  validate_args refused them; the tool did not run
    TOOL_FAILED        the tool raised (SystemExit and TimeoutError too) or cancelled itself
    TOOL_TIMEOUT       it was still running after `timeout` seconds (None: no limit)
    ABORTED            ctx.signal was aborted, before the start (the tool did not run) or since
    BAD_OUTPUT         it returned neither a str nor a ToolOutput that makes a legal result

    Deadline and abort end the waiting and ask the tool's task to stop (Task.cancel); an answer
    that is already there goes before both. Of all text blocks together the first `max_output`
    characters are kept, of errors too; where more was cut, one more text block says so.
    """
    raise NotImplementedError("Lab 06.2 tool executor 尚未实现")


async def execute_batch(
    executor: ToolExecutor,
    calls: Sequence[ToolCall],
    ctx: ExecContext,
    *,
    mode: Literal["parallel", "sequential"] = "parallel",
) -> list[ToolResultMessage]:
    """One result for each call, in the order of `calls`, whichever finished first.

    "parallel" starts all calls, in order, and waits for all; "sequential" starts a call when the
    one before it has its result. An executor that breaks its promise and raises costs only its
    own call: an error result with details {"code": "TOOL_FAILED"}. Cancellation and
    KeyboardInterrupt pass through.
    """
    raise NotImplementedError("Lab 06.2 tool executor 尚未实现")


def error_result(call: ToolCall, code: str, message: str, *, at: int) -> ToolResultMessage:
    """The error result of `call`: text "code: message", details {"code": code}, `at` in ms.

    Lone surrogates in the message are escaped: making an error never fails.
    """
    legal = f"{code}: {message}".encode("utf-8", "backslashreplace").decode("utf-8")
    return tool_result(call, legal, is_error=True, details={"code": code}, at=at)


# What is no failure of a tool: somebody stops the waiting, the program, or this coroutine.
PASSING = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
