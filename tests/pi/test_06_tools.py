"""Chapter 06: whatever a tool does, its call has one result, in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pi_course.bench import FakeClock
from pi_course.messages import (
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    text_of,
    validate_message,
)
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.tools import (
    ExecContext,
    Tool,
    ToolOutput,
    ToolRegistry,
    create_executor,
    execute_batch,
)

from tests.pi.arbitrary import examples, json_objects, run_async, texts

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
Behaviour = Callable[[dict[str, Any], ExecContext], Awaitable[Any]]


class Unspeakable(Exception):
    """An error that fails again when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Foreign(BaseException):
    """An error of somebody who thinks that his errors are above being caught."""


def returns(value: object) -> Behaviour:
    async def behave(args: dict[str, Any], ctx: ExecContext) -> Any:
        return value

    return behave


def raises(error: BaseException) -> Behaviour:
    async def behave(args: dict[str, Any], ctx: ExecContext) -> Any:
        raise error

    return behave


async def cancels_itself(args: dict[str, Any], ctx: ExecContext) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def sleeps(args: dict[str, Any], ctx: ExecContext) -> Any:
    await asyncio.sleep(60)


async def shrugs_off_the_cancel(args: dict[str, Any], ctx: ExecContext) -> Any:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "too late"


async def fails_when_cancelled(args: dict[str, Any], ctx: ExecContext) -> Any:
    try:
        await asyncio.sleep(60)
    finally:
        raise OSError("and this too")


async def spoils_its_arguments(args: dict[str, Any], ctx: ExecContext) -> Any:
    args.clear()
    args["n"] = object()
    return "done"


def is_no_coroutine(args: dict[str, Any], ctx: ExecContext) -> Any:
    return "at once"


async def aborts(args: dict[str, Any], ctx: ExecContext) -> Any:
    ctx.signal.abort("enough")
    await asyncio.sleep(60)


BEHAVIOURS: dict[str, tuple[Any, str | None]] = {
    "text": (returns("fine"), None),
    "chinese": (returns("好\u2028"), None),
    "blocks": (returns(ToolOutput((TextBlock("a"), ImageBlock("image/png", "QUJD")))), None),
    "own error": (returns(ToolOutput("no", is_error=True)), None),
    "spoils": (spoils_its_arguments, None),
    "nothing": (returns(None), "BAD_OUTPUT"),
    "number": (returns(1), "BAD_OUTPUT"),
    "bytes": (returns(b"raw"), "BAD_OUTPUT"),
    "lone surrogate": (returns("\ud800"), "BAD_OUTPUT"),
    "no blocks": (returns(ToolOutput(3)), "BAD_OUTPUT"),  # type: ignore[arg-type]
    "thinks": (returns(ToolOutput((ThinkingBlock("hm"),))), "BAD_OUTPUT"),
    "calls": (returns(ToolOutput((ToolCall("x", "y", {}),))), "BAD_OUTPUT"),
    "bad details": (returns(ToolOutput("a", details=object())), "BAD_OUTPUT"),  # type: ignore[arg-type]
    "giant details": (returns(ToolOutput("a", details=10**5000)), "BAD_OUTPUT"),
    "bad flag": (returns(ToolOutput("a", is_error=1)), "BAD_OUTPUT"),  # type: ignore[arg-type]
    "error": (raises(ValueError("bad")), "TOOL_FAILED"),
    "stop iteration": (raises(StopIteration(1)), "TOOL_FAILED"),
    "timeout": (raises(TimeoutError()), "TOOL_FAILED"),
    "exit": (raises(SystemExit(3)), "TOOL_FAILED"),
    "unspeakable": (raises(Unspeakable()), "TOOL_FAILED"),
    "surrogate error": (raises(ValueError("\ud800")), "TOOL_FAILED"),
    "foreign": (raises(Foreign("above you")), "TOOL_FAILED"),
    "group": (raises(BaseExceptionGroup("all", [Foreign()])), "TOOL_FAILED"),
    "cancelled": (raises(asyncio.CancelledError()), "TOOL_FAILED"),
    "cancels itself": (cancels_itself, "TOOL_FAILED"),
    "sync": (is_no_coroutine, "TOOL_FAILED"),
    "sleeps": (sleeps, "TOOL_TIMEOUT"),
    "shrugs": (shrugs_off_the_cancel, "TOOL_TIMEOUT"),
    "fails late": (fails_when_cancelled, "TOOL_TIMEOUT"),
    "aborts": (aborts, "ABORTED"),
}


def context() -> ExecContext:
    return ExecContext(FakeClock(5), AbortSignal())


def registry(*tools: tuple[str, Any]) -> ToolRegistry:
    return ToolRegistry(Tool(ToolSpec(name, "", SCHEMA, "read"), run) for name, run in tools)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_executor_never_raises_whatever_the_tool_does(name: str) -> None:
    """Good, bad, foreign, late or never: one legal result with the id, the name and the code."""
    behaviour, code = BEHAVIOURS[name]
    call = ToolCall("电话-1", "tool", {"n": 1})
    executor = create_executor(registry(("tool", behaviour)), timeout=0.02)
    result = run_async(executor(call, context()))
    assert (result.call_id, result.tool_name, result.timestamp) == ("电话-1", "tool", 5)
    assert validate_message(result) == result
    if code is not None:
        assert (result.is_error, result.details) == (True, {"code": code})
        assert text_of(result).startswith(code)
    assert call == ToolCall("电话-1", "tool", {"n": 1})


@examples(100)
@given(json_objects, st.sampled_from(["tool", "nobody", "工具", "'\"\n"]), texts, st.integers(0, 9))
def test_any_arguments_and_any_output_make_a_legal_result(
    arguments: dict[str, Any], name: str, said: str, limit: int
) -> None:
    """Wrong names and wrong arguments never reach the tool; long outputs are cut, all of them."""
    seen = []

    async def tool(args: dict[str, Any], ctx: ExecContext) -> ToolOutput:
        seen.append(args)
        return ToolOutput((TextBlock(said), TextBlock(said)))

    executor = create_executor(registry(("tool", tool)), max_output=limit)
    result = run_async(executor(ToolCall("a", name, arguments), context()))
    assert validate_message(result) == result
    is_good = set(arguments) <= {"n"} and type(arguments.get("n", 0)) is int
    assert bool(seen) == (is_good and name == "tool") == (not result.is_error)
    cut = [block.text for block in result.content if isinstance(block, TextBlock)]
    if seen:
        total = 2 * len(said)
        kept = "".join(cut[:2])
        assert kept == (said + said)[:limit]
        assert (len(cut) == 3) == (total > limit)
    else:
        assert sum(map(len, cut[:-1])) == limit


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["ok", "raise", "nobody"])), max_size=6),
    st.sampled_from(["parallel", "sequential"]),
)
def test_results_stand_in_the_order_of_the_calls(plan: list[tuple[int, str]], mode: Any) -> None:
    """Whoever is first to finish: the results pair with the calls, one by one."""
    started, finished = list[int](), list[int]()

    async def tool(args: dict[str, Any], ctx: ExecContext) -> str:
        number = args["n"]
        started.append(number)
        for _ in range(plan[number][0]):
            await asyncio.sleep(0)
        finished.append(number)
        if plan[number][1] == "raise":
            raise OSError(number)
        return f"answer {number}"

    calls = [
        ToolCall(f"call-{n}", "nobody" if what == "nobody" else "tool", {"n": n})
        for n, (_, what) in enumerate(plan)
    ]
    executor = create_executor(registry(("tool", tool)))
    results = run_async(execute_batch(executor, calls, context(), mode=mode))
    assert [(r.call_id, r.tool_name) for r in results] == [(c.id, c.name) for c in calls]
    for number, (result, (_, what)) in enumerate(zip(results, plan, strict=True)):
        assert result.is_error == (what != "ok")
        assert what != "ok" or text_of(result) == f"answer {number}"
    assert started == [n for n, (_, what) in enumerate(plan) if what != "nobody"]
    assert sorted(finished) == started
    if mode == "sequential":
        assert finished == started


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_an_executor_that_raises_costs_only_its_own_call(mode: Any) -> None:
    """Every kind of error out of an executor becomes the result of the call that it was given."""
    errors = [OSError("x"), SystemExit(1), Unspeakable(), ValueError("\ud800"), Foreign("f")]

    async def executor(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        raise errors[int(call.id)]

    calls = [ToolCall(str(n), "tool", {}) for n in range(len(errors))]
    results = run_async(execute_batch(executor, calls, context(), mode=mode))
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert all(result.details == {"code": "TOOL_FAILED"} for result in results)
