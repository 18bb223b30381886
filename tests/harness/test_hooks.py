"""The gate: order, permission, and that it fails closed."""

from __future__ import annotations

from typing import Any

import pytest
from harness.hooks import LOCAL_TOOLS, Hooks, execute_with_hooks, execute_with_permission
from harness.messages import Block
from harness.tools import Tool

RUN: Block = {"type": "tool_use", "id": "id-1", "name": "run_python", "input": {}}
NO_HOOKS = Hooks()


def _tools(log: list[str]) -> dict[str, Tool]:
    def run() -> str:
        log.append("core")
        return "ran"

    return {name: Tool("", {}, run) for name in ("run_python", "read_file", "brand_new")}


def _raise(*_: object) -> Any:
    raise RuntimeError("hook is broken")


def test_order_is_before_permission_core_after() -> None:
    """Before hooks in order, then the user, then the tool, then after hooks with the result."""
    log: list[str] = []

    def approve(call: Block) -> bool:
        log.append("approve")
        return True

    hooks = Hooks(
        before=(lambda call: log.append("b1"), lambda call: log.append("b2")),
        after=(lambda call, result: log.append(f"a {result['content']}"),),
    )
    execution = execute_with_permission(RUN, _tools(log), approve, hooks)
    assert log == ["b1", "b2", "approve", "core", "a ran"]
    assert execution["result"]["content"] == "ran"
    assert execution["notes"] == []


def test_blocking_hook_stops_everything_behind_it() -> None:
    """A reason from a before hook is the result; nobody is asked and nothing runs."""
    log: list[str] = []
    hooks = Hooks(before=(lambda call: "secret file", _raise), after=(_raise,))
    execution = execute_with_permission(RUN, _tools(log), _raise, hooks)
    assert execution["result"]["is_error"] is True
    assert "secret file" in execution["result"]["content"]
    assert (log, execution["notes"]) == ([], [])


@pytest.mark.parametrize("answer", [False, None, 1, "yes", [True]])
def test_only_true_is_permission(answer: Any) -> None:
    """A truthy answer that is not True does not let a program run."""
    log: list[str] = []
    result = execute_with_permission(RUN, _tools(log), lambda call: answer, NO_HOOKS)["result"]
    assert (result["is_error"], result["content"], log) == (True, "运行未获许可。", [])


def test_broken_gate_is_closed() -> None:
    """A before hook or an approve that raises blocks the call and leaves a note."""
    log: list[str] = []
    for hooks, approve in [(Hooks(before=(_raise,)), lambda call: True), (NO_HOOKS, _raise)]:
        execution = execute_with_permission(RUN, _tools(log), approve, hooks)
        assert execution["result"]["is_error"] is True
        assert (len(execution["notes"]), log) == (1, [])


def test_broken_after_hook_changes_nothing() -> None:
    """The core ran once, its result stands, later after hooks still run, the failure is noted."""
    log: list[str] = []
    hooks = Hooks(after=(_raise, lambda call, result: log.append("second")))
    execution = execute_with_hooks(RUN, _tools(log), hooks)
    assert (execution["result"]["content"], log) == ("ran", ["core", "second"])
    assert len(execution["notes"]) == 1


def test_hooks_get_copies() -> None:
    """What a hook or approve changes in its call or result reaches nobody else."""
    def spoil(call: Block, *more: Block) -> None:
        for block in (call, *more):
            block.clear()

    def approve(call: Block) -> bool:
        call.clear()
        return True

    hooks = Hooks(before=(spoil,), after=(spoil,))
    execution = execute_with_hooks(RUN, _tools([]), hooks, approve=approve)
    assert execution["result"]["tool_use_id"] == RUN["id"] == "id-1"


def test_every_tool_but_the_local_ones_asks() -> None:
    """A tool that nobody has classified asks for permission; a local read does not."""
    asked: list[str] = []

    def approve(call: Block) -> bool:
        asked.append(call["name"])
        return False

    for name in ("read_file", "brand_new"):
        execute_with_permission({**RUN, "name": name}, _tools([]), approve, NO_HOOKS)
    assert asked == ["brand_new"]
    assert "load_skill" not in LOCAL_TOOLS
