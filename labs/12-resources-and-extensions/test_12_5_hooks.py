"""Lab 12.5: gates that fail stay closed, observers that fail change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course import resources
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import TextBlock, ToolCall, ToolResultMessage, text_of, tool_result
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
        if isinstance(result, BaseException):
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
    """The results of CALL through a host with one extension that has these hooks.

    Another extension with hooks failed before; the executor was wrapped before either of them.
    """

    def factory(context: Any) -> None:
        for name, listener in hooks:
            context.on(name, listener)

    def failing_factory(context: Any) -> None:
        context.on("before_tool_call", lambda call: resources.Deny("from a failed extension"))
        raise RuntimeError("half of an extension")

    async def scenario() -> list[Any]:
        host = resources.create_extension_host(ToolRegistry(), hook_timeout=timeout, report=report)
        wrapped = host.wrap_executor(core)

        def load(id: str, default: object) -> Any:
            return resources.load_extension(
                resources.ExtensionSource(id, Path("policy.py")),
                is_trusted=lambda source: True,
                import_module=lambda source: SimpleNamespace(default=default),
                host=host,
            )

        with contextlib.suppress(CourseError):
            await load("failed", failing_factory)
        await load("policy", factory)
        ctx = ExecContext(FakeClock(1_000), AbortSignal())
        return [await wrapped(CALL, ctx) for _ in range(times)]

    return asyncio.run(scenario())


def _is_paired_error(result: Any) -> bool:
    return (result.call_id, result.tool_name, result.is_error) == ("call-7", "read", True)


def _details(result: Any, *keys: str) -> tuple[Any, ...]:
    return tuple((result.details or {}).get(key) for key in keys)


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
    assert _details(result, "code", "extension_id") == ("DENIED", "policy")
    assert _details(result, "reason") == ("secrets stay here",)
    assert "DENIED" in text_of(result) and "secrets stay here" in text_of(result)
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
            assert _details(result, "code", "extension_id") == ("HOOK_FAILED", "policy")
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
        broken_saw.append(result)
        raise RuntimeError("observer out of order")

    async def hangs(result: Any) -> None:
        await asyncio.sleep(20)

    def watch(result: Any) -> resources.Deny:
        watched.append(result)
        return resources.Deny("too late")

    def told() -> set[Any]:
        return {(r.extension_id, r.hook, r.kind) for r in reports}

    broken_saw: list[Any] = []
    gates = [("before_tool_call", hook) for hook in (gate, gate)]
    after = [("after_tool_result", hook) for hook in (broken, watch)]
    core = _Core(_fact(), _fact(is_error=True))
    facts = _run(core, [*gates, *after], reports.append, times=2)
    assert gated or watched, NOT_YET
    assert facts == watched == broken_saw == [_fact(), _fact(is_error=True)]
    assert (gated, core.calls) == ([CALL] * 4, [CALL] * 2)
    handed = [*gated, *core.calls, CALL, *facts, *core.results, *watched, *broken_saw]
    for hook_got in (*gated, *watched, *broken_saw):
        assert sum(value is hook_got for value in handed) == 1, "not a copy of its own"

    stray = tool_result(ToolCall("call-8", "read", {}), "of another call", at=5)
    core = _Core(ValueError("core fell over"), SystemExit(3), None, stray)
    watched.clear()
    bad = _run(core, [*gates, *after], reports.append, times=4)
    codes = [_details(result, "code") for result in bad if _is_paired_error(result)]
    assert codes == [("TOOL_FAILED",), ("TOOL_FAILED",), ("BAD_OUTPUT",), ("BAD_OUTPUT",)]
    assert watched == bad
    assert core.calls == [CALL] * 4
    assert len(reports) == 6
    assert told() == {("policy", "after_tool_result", "error")}

    watched.clear()
    reports.clear()
    late = [("after_tool_result", hook) for hook in (hangs, watch)]
    core = _Core()
    assert _run(core, late, reports.append, timeout=0.2) == watched == [_fact()]
    assert (len(core.calls), len(reports)) == (1, 1)
    assert told() == {("policy", "after_tool_result", "timeout")}
