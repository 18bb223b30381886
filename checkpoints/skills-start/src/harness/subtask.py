"""A subtask: a second, smaller conversation that can only read files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.hooks import Hooks, execute_with_hooks
from harness.loop import run_loop
from harness.messages import Block, Message
from harness.tools import Tool, Tools
from harness.workspace import read_file

CHILD_SYSTEM = "只读检查交给你的子任务；区分推导与已执行，不运行程序，完成后用文字报告。"


def ask_child(
    task: str,
    *,
    ask: Callable[[list[Message], Tools], list[Block]],
    workspace: Path,
    hooks: Hooks,
    max_calls: int = 4,
) -> str:
    """The child's report on `task`. All it knows is the task's text; all it can do is `read_file`.

    It starts from an empty history and its budget is its own; a child that has not reported within
    it is a ValueError. The parent's hooks watch its calls too.
    """
    tools = child_tools(workspace)
    outcome = run_loop(
        lambda history: ask(history, tools),
        lambda call: execute_with_hooks(call, tools, hooks)["result"],
        max_calls=max_calls,
        question=task,
    )
    if outcome.stop != "final":
        raise ValueError("子任务未在预算内完成。")
    return outcome.answer


def child_tools(workspace: Path) -> dict[str, Tool]:
    """The child's whole table: `read_file`."""
    return {
        "read_file": Tool(
            "读取工作区内的一个UTF-8文本文件。",
            {"path": "相对工作区的路径"},
            partial(read_file, workspace),
        )
    }
