"""Skills in the loop: one tool more, one way through the gate more, and the run put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.hooks import Approve, Execution, Hooks
from harness.loop import Outcome
from harness.messages import Block
from harness.plan import PlanState
from harness.skills import Registry
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
    raise NotImplementedError("Lab s07.4 skills in the loop 尚未实现")


def execute_with_skills(call: Block, tools: Tools, approve: Approve, hooks: Hooks) -> Execution:
    """The call through the gate: `load_skill` as a local read, every other tool as before.

    `load_skill` passes before hooks, dispatcher and after hooks and asks no permission. Any other
    call takes `execute_with_permission`; no text that was loaded changes that. The result carries
    the call's id.
    """
    raise NotImplementedError("Lab s07.4 skills in the loop 尚未实现")


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
    raise NotImplementedError("Lab s07.4 skills in the loop 尚未实现")
