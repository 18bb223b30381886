"""The parent's tools before this lesson."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.plan import PlanState, update_plan
from harness.subtask import child_tools
from harness.tools import Tool
from harness.workspace import run_python


def core_tools(
    workspace: Path, state: PlanState, ask_child: Callable[[str], str]
) -> dict[str, Tool]:
    """read_file, run_python, update_plan and ask_child, bound to this workspace and plan."""
    return {
        **child_tools(workspace),
        "run_python": Tool(
            "在工作区运行一个Python程序；每次运行都要用户许可。",
            {"path": "相对工作区的路径"},
            partial(run_python, workspace),
        ),
        "update_plan": Tool(
            "写下或更新任务清单。",
            {"steps": "每行一步，以“[ ] ”或“[x] ”开头"},
            partial(update_plan, state),
        ),
        "ask_child": Tool(
            "把一项只读检查交给子任务；它看不到这里的历史。",
            {"task": "子任务需要知道的全部内容"},
            lambda task: ask_child(task),
        ),
    }
