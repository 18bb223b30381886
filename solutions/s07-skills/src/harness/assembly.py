"""Skills in the loop: one tool more, one way through the gate more, and the run put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harness import subtask
from harness.claude import ask_claude
from harness.hooks import Approve, Execution, Hooks, execute_with_hooks, execute_with_permission
from harness.loop import Outcome, run_loop
from harness.messages import Block
from harness.plan import PlanState, prepare_messages
from harness.skills import Registry, build_system, load_skill, scan_skills
from harness.toolbox import core_tools
from harness.tools import Tool, Tools

BASE = "围绕用户问题，按宿主权限使用工具。"
MAX_CALLS = 6


def build_tools(
    workspace: Path, state: PlanState, ask_child: Callable[[str], str], registry: Registry
) -> dict[str, Tool]:
    """The parent's table: everything in `core_tools`, and `load_skill`.

    `load_skill` has the one string parameter `name` and answers with the skill's whole text; what
    `harness.skills.load_skill` raises becomes an `is_error` result in the dispatcher.
    """
    return {
        **core_tools(workspace, state, ask_child),
        "load_skill": Tool(
            "按目录中的名称读取一份技能的完整说明。",
            {"name": "技能名称，与目录一致"},
            lambda name: load_skill(name, registry),
        ),
    }


def execute_with_skills(call: Block, tools: Tools, approve: Approve, hooks: Hooks) -> Execution:
    """The call through the gate: `load_skill` as a local read, every other tool as before.

    `load_skill` passes before hooks, dispatcher and after hooks and asks no permission. Any other
    call takes `execute_with_permission`; no text that was loaded changes that. The result carries
    the call's id.
    """
    if call["name"] == "load_skill":
        return execute_with_hooks(call, tools, hooks)
    return execute_with_permission(call, tools, approve, hooks)


def run_with_skills(
    question: str,
    *,
    client: Any,
    model: str,
    skills_root: Path,
    workspace: Path,
    approve: Approve,
    hooks: Hooks,
    base: str = BASE,
    max_calls: int = MAX_CALLS,
) -> Outcome:
    """The outcome of one run of the parent, skills included.

    Once, before the loop: scan `skills_root`, build the system prompt from `base` (an error of the
    scan stops the run before any request). In each request: the history with the current plan
    added to a copy (`prepare_messages`), the tools of `build_tools`, the same system prompt. Each
    call goes through `execute_with_skills`. A loaded body reaches the model as the result of its
    call and in no other way.

    The child (`harness.subtask.ask_child`) asks the same client and model with CHILD_SYSTEM and its
    own tools: it has no catalogue and no `load_skill`.
    """
    registry = scan_skills(skills_root)
    system = build_system(registry, base)
    state = PlanState()
    child = partial(
        subtask.ask_child,
        ask=lambda history, tools: ask_claude(client, model, history, tools, subtask.CHILD_SYSTEM),
        workspace=workspace,
        hooks=hooks,
    )
    tools = build_tools(workspace, state, child, registry)
    return run_loop(
        lambda history: ask_claude(client, model, prepare_messages(history, state), tools, system),
        lambda call: execute_with_skills(call, tools, approve, hooks)["result"],
        max_calls=max_calls,
        question=question,
    )
