"""Tables are merged, the run is a generator of turns."""

import functools
import itertools

import harness.skills
from harness.claude import ask_claude
from harness.hooks import execute_with_hooks, execute_with_permission
from harness.loop import run_loop
from harness.plan import PlanState, prepare_messages
from harness.subtask import CHILD_SYSTEM, ask_child
from harness.toolbox import core_tools
from harness.tools import Tool

BASE = "围绕用户问题，按宿主权限使用工具。"
MAX_CALLS = 6
BY_ITSELF = {"load_skill": lambda call, tools, approve, hooks: execute_with_hooks(
    call, tools, hooks)}


def build_tools(workspace, state, ask_child, registry):
    load = functools.partial(harness.skills.load_skill, registry=registry)
    pairs = core_tools(workspace, state, ask_child).items()
    new = ("load_skill", Tool("按名称读取技能。", {"name": "名称"}, load))
    return dict(sorted(itertools.chain(pairs, [new])))


def execute_with_skills(call, tools, approve, hooks):
    return BY_ITSELF.get(call["name"], execute_with_permission)(call, tools, approve, hooks)


def run_with_skills(question, *, client, model, skills_root, workspace, approve, hooks,
                    base=BASE, max_calls=MAX_CALLS):
    registry = harness.skills.scan_skills(skills_root)
    send = functools.partial(ask_claude, client, model)
    state = PlanState()
    child = functools.partial(
        ask_child, workspace=workspace, hooks=hooks,
        ask=lambda messages, tools: send(messages, tools, CHILD_SYSTEM))
    tools = build_tools(workspace, state, child, registry)
    system = harness.skills.build_system(registry, base)

    def turn(history):
        return send(prepare_messages(history, state), tools, system)

    def act(call):
        return execute_with_skills(call, tools, approve, hooks)["result"]

    return run_loop(turn, act, max_calls=max_calls, question=question)
