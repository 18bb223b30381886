"""The gate in front of the tools: hooks before and after a call, and the run permission."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TypedDict

from harness.messages import Block, tool_result
from harness.tools import Tools, dispatch

Approve = Callable[[Block], bool]
BeforeHook = Callable[[Block], str | None]  # a reason blocks the call, None lets it pass
AfterHook = Callable[[Block, Block], None]  # (call, result): it watches, it changes nothing

# The tools of this host that only read its own files or notes. Every other tool asks first.
LOCAL_TOOLS = frozenset({"read_file", "update_plan", "ask_child"})


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks in the order they run."""

    before: tuple[BeforeHook, ...] = ()
    after: tuple[AfterHook, ...] = ()


class Execution(TypedDict):
    """The answered call, and what the host should know about its hooks."""

    result: Block
    notes: list[str]


def execute_with_permission(call: Block, tools: Tools, approve: Approve, hooks: Hooks) -> Execution:
    """The call through the whole gate: outside LOCAL_TOOLS it runs only if `approve` is True."""
    return execute_with_hooks(
        call, tools, hooks, approve=None if call["name"] in LOCAL_TOOLS else approve
    )


def execute_with_hooks(
    call: Block, tools: Tools, hooks: Hooks, *, approve: Approve | None = None
) -> Execution:
    """before hooks → permission (if `approve` is given) → dispatcher → after hooks.

    The gate fails closed: a before hook that blocks or raises, and an `approve` that raises or
    returns anything but True, leave the tool untouched and give an `is_error` result. After hooks
    see only calls that reached the dispatcher; one that raises is a note, the result stands.
    """
    notes: list[str] = []
    refusal = _blocked(call, hooks, notes) or _refused(call, approve, notes)
    if refusal:
        return {"result": tool_result(call, refusal, is_error=True), "notes": notes}
    result = dispatch(call, tools)
    for hook in hooks.after:
        try:
            hook(deepcopy(call), deepcopy(result))
        except Exception as error:
            notes.append(f"after hook: {error!r}")
    return {"result": result, "notes": notes}


def _blocked(call: Block, hooks: Hooks, notes: list[str]) -> str | None:
    for hook in hooks.before:
        try:
            reason = hook(deepcopy(call))
        except Exception as error:
            notes.append(f"before hook: {error!r}")
            return "调用被Hook阻止：检查未能完成。"
        if reason is not None:
            return f"调用被Hook阻止：{reason}"
    return None


def _refused(call: Block, approve: Approve | None, notes: list[str]) -> str | None:
    if approve is None:
        return None
    try:
        allowed = approve(deepcopy(call)) is True
    except Exception as error:
        notes.append(f"approve: {error!r}")
        allowed = False
    return None if allowed else "运行未获许可。"
