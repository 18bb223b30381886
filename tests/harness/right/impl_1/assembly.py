"""The table copied and added to, the gate told what is local, the run written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import skills
from harness.claude import ask_claude
from harness.hooks import LOCAL_TOOLS, Approve, Execution, Hooks, execute_with_hooks
from harness.loop import Outcome, run_loop
from harness.messages import Block, Message
from harness.plan import PlanState, prepare_messages
from harness.skills import Registry
from harness.subtask import CHILD_SYSTEM
from harness.subtask import ask_child as child_run
from harness.toolbox import core_tools
from harness.tools import Tool, Tools

BASE = "围绕用户问题，按宿主权限使用工具。"
MAX_CALLS = 6
LOCAL = LOCAL_TOOLS | {"load_skill"}


def build_tools(
    workspace: Path, state: PlanState, ask_child: Callable[[str], str], registry: Registry
) -> dict[str, Tool]:
    def run(name: str) -> str:
        return skills.load_skill(name, registry)

    tools = core_tools(workspace, state, ask_child)
    tools["load_skill"] = Tool("Read a skill.", {"name": "its name"}, run)
    return tools


def execute_with_skills(call: Block, tools: Tools, approve: Approve, hooks: Hooks) -> Execution:
    if call["name"] in LOCAL:
        return execute_with_hooks(call, tools, hooks)
    return execute_with_hooks(call, tools, hooks, approve=approve)


def run_with_skills(
    question: str, *, client: Any, model: str, skills_root: Path, workspace: Path,
    approve: Approve, hooks: Hooks, base: str = BASE, max_calls: int = MAX_CALLS,
) -> Outcome:
    registry = skills.scan_skills(skills_root)
    system = skills.build_system(registry, base)
    state = PlanState()

    def ask_for_child(history: list[Message], tools: Tools) -> list[Block]:
        return ask_claude(client, model, history, tools, CHILD_SYSTEM)

    def child(task: str) -> str:
        return child_run(task, ask=ask_for_child, workspace=workspace, hooks=hooks)

    tools = build_tools(workspace, state, child, registry)

    def ask(history: list[Message]) -> list[Block]:
        return ask_claude(client, model, prepare_messages(history, state), tools, system)

    def execute(call: Block) -> Block:
        return execute_with_skills(call, tools, approve, hooks)["result"]

    return run_loop(ask, execute, max_calls=max_calls, question=question)
