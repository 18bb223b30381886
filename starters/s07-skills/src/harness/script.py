"""What the scripted model says in the lesson's run: a fixed course, decided by the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.messages import Block, Message
from harness.scripted import Request
from harness.workspace import run_report

PLAN = "[x] 加载规范\n[ ] 只读检查\n[ ] 获准后运行并核对"
TASK = "只读检查main.py与expected.txt，说明推导，不要运行。"


def script(skill: str = "output-check") -> Callable[[Request], list[Block]]:
    """The stand-in's replies, decided by the request alone, so that a server can give them too.

    Parent: load the skill → plan and subtask → read expected.txt → run main.py → answer from what
    the results say. Child: read main.py → read expected.txt → report.
    """

    def reply(request: Request) -> list[Block]:
        step = sum(message["role"] == "assistant" for message in request["messages"])
        return (_parent if is_parent(request) else _child)(step, request["messages"], skill)

    return reply


def is_parent(request: Request) -> bool:
    """Whether the parent asks: only the parent has the tool `load_skill`."""
    return any(tool["name"] == "load_skill" for tool in request["tools"])


def _parent(step: int, messages: Sequence[Message], skill: str) -> list[Block]:
    results = _results(messages)
    if step == 0:
        return [_call("parent_skill", "load_skill", name=skill)]
    if results["parent_skill"]["is_error"]:
        return [_say(f"规范没有加载：{results['parent_skill']['content']}未继续，程序未执行。")]
    if step == 1:
        return [
            _call("parent_plan", "update_plan", steps=PLAN),
            _call("parent_task", "ask_child", task=TASK),
        ]
    if step == 2:
        return [_call("parent_read", "read_file", path="expected.txt")]
    if step == 3:
        return [_call("parent_run", "run_python", path="main.py")]
    run, expected = results["parent_run"], results["parent_read"]["content"]
    if run["is_error"]:
        return [_say(f"推导见子任务；{run['content']}未继续，程序未执行。")]
    same = run["content"] == run_report(0, expected, "")
    return [_say(f"已运行；完整输出与expected.txt{'一致' if same else '不一致'}。")]


def _child(step: int, messages: Sequence[Message], skill: str) -> list[Block]:
    if step < 2:
        return [_call(f"child_{step}", "read_file", path=("main.py", "expected.txt")[step])]
    return [_say("推导：程序逐项输出并给出合计，应与expected.txt相符；未执行。")]


def _call(number: str, tool: str, **arguments: str) -> Block:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments}


def _say(text: str) -> Block:
    return {"type": "text", "text": text}


def _results(messages: Sequence[Message]) -> dict[str, Block]:
    return {
        block["tool_use_id"].removeprefix("toolu_"): block
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
