"""A session object holds what a run needs; the new tool stands first in the table."""

from harness import claude, loop, plan, skills, subtask, toolbox
from harness import hooks as gate
from harness.tools import Tool

BASE = "围绕用户问题，按宿主权限使用工具。"
MAX_CALLS = 6


class Loader:
    """load_skill on one registry."""

    def __init__(self, registry):
        self.registry = registry

    def __call__(self, *, name):
        return skills.load_skill(name, self.registry)


class Session:
    """One run of the parent."""

    def __init__(self, client, model, workspace, hooks, approve, skills_root, base):
        self.client, self.model, self.workspace = client, model, workspace
        self.hooks, self.approve = hooks, approve
        registry = skills.scan_skills(skills_root)
        self.system = skills.build_system(registry, base)
        self.plan = plan.PlanState()
        self.tools = build_tools(workspace, self.plan, self.child, registry)

    def ask(self, history):
        messages = plan.prepare_messages(history, self.plan)
        return claude.ask_claude(self.client, self.model, messages, self.tools, self.system)

    def ask_as_child(self, history, tools):
        return claude.ask_claude(self.client, self.model, history, tools, subtask.CHILD_SYSTEM)

    def child(self, task):
        return subtask.ask_child(
            task, ask=self.ask_as_child, workspace=self.workspace, hooks=self.hooks)

    def execute(self, call):
        return execute_with_skills(call, self.tools, self.approve, self.hooks)["result"]


def build_tools(workspace, state, ask_child, registry):
    new = Tool(description="一份技能的全文", parameters={"name": "名称"}, run=Loader(registry))
    return {"load_skill": new} | toolbox.core_tools(workspace, state, ask_child)


def execute_with_skills(call, tools, approve, hooks):
    enter = gate.execute_with_permission
    match call:
        case {"name": "load_skill"}:
            return enter(call, tools, lambda call: True, hooks)
        case _:
            return enter(call, tools, approve, hooks)


def run_with_skills(question, *, client, model, skills_root, workspace, approve, hooks,
                    base=BASE, max_calls=MAX_CALLS):
    session = Session(client, model, workspace, hooks, approve, skills_root, base)
    return loop.run_loop(session.ask, session.execute, max_calls=max_calls, question=question)
