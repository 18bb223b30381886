"""The loop: ask, save the request, execute it, save the results, ask again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.messages import Block, Message, text_of, tool_calls

Ask = Callable[[list[Message]], list[Block]]
Execute = Callable[[Block], Block]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: a final answer, or `call_limit` with an empty one."""

    stop: Literal["final", "call_limit"]
    answer: str
    messages: list[Message]
    calls: int


def run_loop(ask: Ask, execute: Execute, *, max_calls: int, question: str) -> Outcome:
    """The outcome after at most `max_calls` questions to the model.

    A request is in the history before any of its results, and every request there is answered:
    when the budget ends, the last requests have been executed and nothing hangs in the air.
    """
    history: list[Message] = [{"role": "user", "content": question}]
    for number in range(1, max_calls + 1):
        content = ask(history)
        history.append({"role": "assistant", "content": content})
        calls = tool_calls(content)
        if not calls:
            return Outcome("final", text_of(content), history, number)
        history.append({"role": "user", "content": [execute(call) for call in calls]})
    return Outcome("call_limit", "", history, max_calls)
