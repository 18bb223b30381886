"""Lab 12.5: gates that fail stay closed, observers that fail change nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course import resources
from pi_course.bench import FakeClock
from pi_course.messages import TextBlock, ToolCall, ToolResultMessage, tool_result
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, ToolRegistry

NOT_YET = "Lab 12.5 hook policy 尚未实现"
CALL = ToolCall("call-7", "read", {"path": "README.md", "lines": (1, 2)})


class _Core:
    """An executor that counts, and answers each call with the next of its results."""

    def __init__(self, *results: object) -> None:
        self.calls: list[ToolCall] = []
        self.results = list(results) or [_fact()]

    async def __call__(self, call: ToolCall, ctx: ExecContext) -> Any:
        self.calls.append(call)
        result = self.results[min(len(self.calls), len(self.results)) - 1]
        if isinstance(result, Exception):
            raise result
        return result


def _fact(is_error: bool = False) -> ToolResultMessage:
    blocks = [TextBlock("what the core did")]
    return tool_result(CALL, blocks, is_error=is_error, details={"sizes": (3,)}, at=5)


def _run(
    core: _Core,
    hooks: Sequence[tuple[str, Callable[[Any], object]]],
    report: Callable[[Any], object],
    *,
    times: int = 1,
    timeout: float = 5.0,
) -> list[Any]:
    """The results of CALL through a host with one extension that has these hooks."""

    def factory(context: Any) -> None:
        for name, listener in hooks:
            context.on(name, listener)

    async def scenario() -> list[Any]:
        host = resources.create_extension_host(ToolRegistry(), hook_timeout=timeout, report=report)
        wrapped = host.wrap_executor(core)
        await resources.load_extension(
            resources.ExtensionSource("policy", Path("policy.py")),
            is_trusted=lambda source: True,
            import_module=lambda source: SimpleNamespace(default=factory),
            host=host,
        )
        ctx = ExecContext(FakeClock(1_000), AbortSignal())
        return [await wrapped(CALL, ctx) for _ in range(times)]

    return asyncio.run(scenario())


def _is_paired_error(result: Any) -> bool:
    return (result.call_id, result.tool_name, result.is_error) == ("call-7", "read", True)


def test_a_denied_call_never_reaches_the_core() -> None:
    """Deny stops the call and the hooks after it, is told to the model, and is no fault."""
    asked: list[str] = []
    reports: list[Any] = []

    async def allow(call: Any) -> object:
        asked.append("allow")
        return resources.Allow()

    def say_nothing(call: Any) -> None:
        asked.append("nothing")

    def deny(call: Any) -> object:
        asked.append("deny")
        return resources.Deny("secrets stay here")

    before = [("before_tool_call", hook) for hook in (allow, say_nothing, deny, allow)]
    observed: list[Any] = []
    core = _Core()
    (result,) = _run(core, [*before, ("after_tool_result", observed.append)], reports.append)

    assert asked, NOT_YET
    assert asked == ["allow", "nothing", "deny"]
    assert core.calls == []
    assert _is_paired_error(result)
    assert result.details["code"] == "DENIED"
    assert result.details["reason"] == "secrets stay here"
    assert (observed, reports) == ([], [])

    asked.clear()
    (result,) = _run(core, before[:2], reports.append)
    assert (asked, core.calls, result) == (["allow", "nothing"], [CALL], _fact())
    assert reports == []


def test_a_gate_that_fails_stays_closed() -> None:
    """Raising, hanging and answering nonsense block the call and are reported, each by its kind."""
    asked: list[Any] = []
    released = threading.Event()

    def broken(call: Any) -> object:
        raise TimeoutError("this is an error of the policy, not a deadline")

    def leaves(call: Any) -> object:
        raise SystemExit(0)

    async def hangs(call: Any) -> object:
        await asyncio.sleep(20)
        return resources.Allow()

    def blocks(call: Any) -> object:
        released.wait(0.5)
        return resources.Allow()

    async def answers_yes(call: Any) -> object:
        return True

    def failing_report(found: Any) -> None:
        raise RuntimeError("no log to write to")

    for hook, kind in [
        (broken, "error"),
        (leaves, "error"),
        (hangs, "timeout"),
        (blocks, "timeout"),
        (answers_yes, "bad_result"),
        (lambda call: resources.Allow, "bad_result"),
    ]:

        def gate(call: Any, hook: Callable[[Any], object] = hook) -> object:
            asked.append(call)
            return hook(call)

        for report_fails in (False, True):
            core = _Core()
            reports: list[Any] = []
            report = failing_report if report_fails else reports.append
            timeout = 0.04 if kind == "timeout" else 5.0
            (result,) = _run(core, [("before_tool_call", gate)], report, timeout=timeout)
            released.set()
            released.clear()
            assert asked, NOT_YET
            assert (hook.__name__, core.calls) == (hook.__name__, [])
            assert _is_paired_error(result)
            assert result.details["code"] == "HOOK_FAILED"
            expected = [] if report_fails else [("policy", "before_tool_call", kind)]
            assert [(r.extension_id, r.hook, r.kind) for r in reports] == expected


def test_observers_see_every_result_once_and_change_none() -> None:
    """Each after hook runs once a result, good or bad; failing ones are reported and no more."""
    gated: list[Any] = []
    watched: list[Any] = []
    reports: list[Any] = []

    def meddle(value: Any) -> None:
        """Try what an extension could try to change what others get to see."""
        for attempt in (
            lambda: value.arguments.update(path=".env"),
            lambda: value.arguments["lines"].append(3),
            lambda: value.details.update(sizes=[]),
            lambda: value.details["sizes"].append(9),
            lambda: value.content.append(TextBlock("more")),
            lambda: setattr(value, "is_error", False),
        ):
            try:
                attempt()
            except (AttributeError, TypeError, KeyError):
                continue

    def gate(call: Any) -> None:
        meddle(call)
        gated.append(call)

    def broken(result: Any) -> None:
        meddle(result)
        raise RuntimeError("observer out of order")

    async def hangs_once(result: Any) -> None:
        if not watched:
            await asyncio.sleep(20)

    def watch(result: Any) -> resources.Deny:
        watched.append(result)
        return resources.Deny("too late")

    core = _Core(_fact(), _fact(is_error=True), ValueError("core fell over"))
    after = [("after_tool_result", hook) for hook in (broken, hangs_once, watch)]
    hooks = [("before_tool_call", gate), *after]
    results = _run(core, hooks, reports.append, times=3, timeout=0.2)

    assert gated and watched, NOT_YET
    assert core.calls == [CALL, CALL, CALL]
    assert results[:2] == [_fact(), _fact(is_error=True)]
    assert _is_paired_error(results[2])
    assert watched == results
    assert gated == [CALL, CALL, CALL]
    assert {(r.extension_id, r.hook) for r in reports} == {("policy", "after_tool_result")}
    assert [r.kind for r in reports] == ["error", "timeout", "error", "error"]
