"""Tools: the list of what an agent may do, and the one road on which it is done.

A tool call is a wish of the model. Whatever becomes of it (done, refused, failed, too slow, cut
off) ends as one value: the ToolResultMessage that carries the id and the name of the call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pi_course.bench import Clock
from pi_course.errors import CourseError
from pi_course.messages import Block, TextBlock, ToolCall, ToolResultMessage, text, tool_result
from pi_course.schema import ToolSpec, check_schema, validate_args
from pi_course.signals import AbortSignal
from pi_course.values import JSONValue, thaw

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
        self._tools: dict[str, Tool] = {}
        self.register_all(tools)

    def register(self, tool: Tool) -> None:
        """List `tool` after all others; the errors are those of register_all."""
        self.register_all((tool,))

    def register_all(self, tools: Iterable[Tool]) -> None:
        """List all `tools` in their order or, on an error, not one of them.

        CourseError INVALID_TOOL: not a Tool, a name that TOOL_NAME does not match from end to
        end, an execute that cannot be called, or an input_schema that check_schema refuses.
        CourseError DUPLICATE_TOOL: a name that is taken, here or earlier in `tools`; the tool
        that had it stays.
        """
        listed = dict(self._tools)
        for tool in tools:
            _check(tool)
            if tool.spec.name in listed:
                raise CourseError("DUPLICATE_TOOL", f"the name {tool.spec.name!r} is taken")
            listed[tool.spec.name] = tool
        self._tools = listed

    def get(self, name: str) -> Tool | None:
        """The tool of that exact name, or None."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration."""
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told of the tools, in the order of registration."""
        return tuple(tool.spec for tool in self._tools.values())


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

    async def execute(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        try:
            tool = _find(registry, call.name)
            args = thaw(validate_args(tool.spec.input_schema, call.arguments))
            output = await _settle(tool, args, replace(ctx, call_id=call.id), timeout)
            result = _pair(call, output, at=ctx.clock.now_ms())
        except CourseError as error:
            result = error_result(call, error.code, error.message, at=ctx.clock.now_ms())
        return _clip(result, max_output)

    return execute


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

    async def answer(call: ToolCall) -> ToolResultMessage:
        try:
            return await executor(call, ctx)
        except PASSING:
            raise
        except BaseException as error:
            return error_result(call, "TOOL_FAILED", _describe(error), at=ctx.clock.now_ms())

    if mode == "sequential":
        return [await answer(call) for call in calls]
    return await asyncio.gather(*(answer(call) for call in calls))


def error_result(call: ToolCall, code: str, message: str, *, at: int) -> ToolResultMessage:
    """The error result of `call`: text "code: message", details {"code": code}, `at` in ms.

    Lone surrogates in the message are escaped: making an error never fails.
    """
    legal = f"{code}: {message}".encode("utf-8", "backslashreplace").decode("utf-8")
    return tool_result(call, legal, is_error=True, details={"code": code}, at=at)


# What is no failure of a tool: somebody stops the waiting, the program, or this coroutine.
PASSING = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


def _check(tool: object) -> None:
    if not (isinstance(tool, Tool) and isinstance(tool.spec, ToolSpec) and callable(tool.execute)):
        raise CourseError("INVALID_TOOL", "expected a Tool with a ToolSpec and a callable")
    if not (isinstance(tool.spec.name, str) and TOOL_NAME.fullmatch(tool.spec.name)):
        raise CourseError("INVALID_TOOL", f"{tool.spec.name!r} is no name for a tool")
    try:
        check_schema(tool.spec.input_schema)
    except CourseError as error:
        raise CourseError("INVALID_TOOL", f"{tool.spec.name}: {error.message}") from error


def _find(registry: ToolRegistry, name: str) -> Tool:
    if (tool := registry.get(name)) is None:
        known = ", ".join(registry.names()) or "none"
        raise CourseError("UNKNOWN_TOOL", f"there is no tool {name!r}; the tools are: {known}")
    return tool


async def _settle(tool: Tool, args: Any, ctx: ExecContext, timeout: float | None) -> object:
    """What the tool returned, if that came before the abort and the deadline."""
    if ctx.signal.aborted:
        raise CourseError("ABORTED", f"{tool.spec.name} was not started")
    work = asyncio.ensure_future(_attempt(tool, args, ctx))
    abort = asyncio.ensure_future(ctx.signal.wait())
    try:
        await asyncio.wait({work, abort}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        abort.cancel()
        work.cancel()
        # Taken here, or asyncio would log that nobody took it.
        work.add_done_callback(lambda late: late.cancelled() or late.exception())
    if work.cancelled():
        raise CourseError("TOOL_FAILED", f"{tool.spec.name} stopped by itself")
    if work.done():
        return work.result()
    if ctx.signal.aborted:
        raise CourseError("ABORTED", f"{tool.spec.name} was stopped")
    raise CourseError("TOOL_TIMEOUT", f"{tool.spec.name} was stopped after {timeout} s")


async def _attempt(tool: Tool, args: dict[str, Any], ctx: ExecContext) -> object:
    try:
        return await tool.execute(args, ctx)
    except PASSING:
        raise
    except BaseException as error:
        raise CourseError("TOOL_FAILED", _describe(error)) from error


def _pair(call: ToolCall, output: object, *, at: int) -> ToolResultMessage:
    if isinstance(output, str):
        output = ToolOutput(output)
    if not isinstance(output, ToolOutput):
        raise CourseError("BAD_OUTPUT", f"{call.name} returned {type(output).__name__}")
    try:
        return tool_result(
            call, output.content, is_error=output.is_error, details=output.details, at=at
        )
    except Exception as error:
        raise CourseError("BAD_OUTPUT", f"{call.name}: {_describe(error)}") from error


def _clip(result: ToolResultMessage, limit: int) -> ToolResultMessage:
    kept: list[Block] = []
    total = 0
    for block in result.content:
        if isinstance(block, TextBlock):
            block, total = text(block.text[: max(0, limit - total)]), total + len(block.text)
        kept.append(block)
    if total > limit:
        kept.append(text(f"[truncated: the first {limit} of {total} characters]"))
    return replace(result, content=tuple(kept))


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
