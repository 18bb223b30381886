"""A loop of its own instead of run_loop, and a gate that decides before it enters."""

from collections import UserDict
from copy import deepcopy

from harness.claude import ask_claude
from harness.hooks import execute_with_hooks, execute_with_permission
from harness.loop import Outcome
from harness.messages import text_of, tool_calls
from harness.plan import PlanState, prepare_messages
from harness.skills import build_system, load_skill, scan_skills
from harness.subtask import CHILD_SYSTEM
from harness.subtask import ask_child as ask_a_child
from harness.toolbox import core_tools
from harness.tools import Tool

BASE = "围绕用户问题，按宿主权限使用工具。"
MAX_CALLS = 6


class Table(UserDict):
    """Tools by name."""


def build_tools(workspace, state, ask_child, registry):
    table = Table()
    table["load_skill"] = Tool("全文", dict.fromkeys(["name"], "名称"),
                               lambda **given: load_skill(given["name"], registry))
    for name, tool in reversed(core_tools(workspace, state, ask_child).items()):
        table[name] = tool
    return table


def execute_with_skills(call, tools, approve, hooks):
    free = call["name"] == "load_skill"
    enter = (execute_with_permission, execute_with_hooks)[free]
    return enter(*(call, tools, approve, hooks) if not free else (call, tools, hooks))


def run_with_skills(question, *, client, model, skills_root, workspace, approve, hooks,
                    base=BASE, max_calls=MAX_CALLS):
    state, registry = PlanState(), scan_skills(skills_root)
    system = build_system(registry, base)
    tools = build_tools(
        workspace, state,
        lambda task: ask_a_child(
            task, workspace=workspace, hooks=hooks,
            ask=lambda history, table: ask_claude(client, model, history, table, CHILD_SYSTEM)),
        registry)
    history = [{"role": "user", "content": question}]
    asked = 0
    while asked < max_calls:
        asked += 1
        reply = ask_claude(client, model, prepare_messages(deepcopy(history), state), tools, system)
        history.append({"role": "assistant", "content": reply})
        if not any(block["type"] == "tool_use" for block in reply):
            return Outcome("final", text_of(reply), history, asked)
        results = []
        for call in tool_calls(reply):
            results.append(execute_with_skills(call, tools, approve, hooks)["result"])
        history.append({"role": "user", "content": results})
    return Outcome("call_limit", "", history, asked)
