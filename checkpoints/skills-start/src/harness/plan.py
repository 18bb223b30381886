"""The plan: a short list that the model keeps, and that only the next request carries."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

from harness.messages import Message

MAX_STEPS = 10


@dataclass(slots=True)
class PlanState:
    """The plan as it stands now: one step a line, empty until the model writes one."""

    steps: str = ""


def update_plan(state: PlanState, steps: str) -> str:
    """Replace the plan. Each line starts with `[ ] ` or `[x] `; anything else is a ValueError."""
    lines = steps.splitlines()
    if not 1 <= len(lines) <= MAX_STEPS:
        raise ValueError(f"清单需有1到{MAX_STEPS}步。")
    if any(line[:4] not in ("[ ] ", "[x] ") or not line[4:].strip() for line in lines):
        raise ValueError("每行需以“[ ] ”或“[x] ”开头并写明步骤。")
    state.steps = "\n".join(lines)
    return "清单已更新。"


def prepare_messages(history: Sequence[Message], state: PlanState) -> list[Message]:
    """A copy of the history for one request, the plan added to its last message.

    The history itself never holds a plan, so an old one cannot pile up there.
    """
    messages = deepcopy(list(history))
    if state.steps and messages:
        last = messages[-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"].append({"type": "text", "text": f"当前清单：\n{state.steps}"})
    return messages
