"""The loop: what is in the history, when, and how a run ends."""

from __future__ import annotations

from copy import deepcopy

from harness.loop import run_loop
from harness.messages import Block, Message, tool_result
from hypothesis import given, settings
from hypothesis import strategies as st


def _call(number: int) -> Block:
    return {"type": "tool_use", "id": f"id-{number}", "name": "read_file", "input": {}}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _done(call: Block) -> Block:
    return tool_result(call, "done")


def test_request_is_saved_before_its_results() -> None:
    """While a call runs, the history ends with the assistant's message that asked for it."""
    seen: list[list[Message]] = []
    history: list[list[Message]] = []
    replies = iter([[_text("look"), _call(1)], [_text("end")]])

    def ask(messages: list[Message]) -> list[Block]:
        history.append(messages)
        return next(replies)

    def execute(call: Block) -> Block:
        seen.append(deepcopy(history[-1]))
        return _done(call)

    outcome = run_loop(ask, execute, max_calls=3, question="q")

    assert seen[0][-1] == {"role": "assistant", "content": [_text("look"), _call(1)]}
    assert (outcome.stop, outcome.answer, outcome.calls) == ("final", "end", 2)
    assert [message["role"] for message in outcome.messages] == [
        "user", "assistant", "user", "assistant",
    ]


def test_budget_of_nothing_asks_nothing() -> None:
    """max_calls = 0 ends as call_limit with only the question in the history."""
    outcome = run_loop(lambda history: [_text("never")], _done, max_calls=0, question="q")
    assert (outcome.stop, outcome.answer, outcome.calls) == ("call_limit", "", 0)
    assert outcome.messages == [{"role": "user", "content": "q"}]


def test_final_answer_in_the_last_call_counts() -> None:
    """An answer in the last call allowed is an answer, not call_limit."""
    outcome = run_loop(lambda history: [_text("yes")], _done, max_calls=1, question="q")
    assert (outcome.stop, outcome.answer, outcome.calls) == ("final", "yes", 1)


@settings(deadline=None)
@given(turns=st.lists(st.integers(0, 3), max_size=6), budget=st.integers(0, 6))
def test_every_request_is_answered_in_order(turns: list[int], budget: int) -> None:
    """Whatever the model asks and wherever the budget ends, results pair with calls by id."""
    number = iter(range(1000))
    replies = iter([[_call(next(number)) for _ in range(count)] for count in turns])

    outcome = run_loop(
        lambda history: next(replies, [_text("end")]), _done, max_calls=budget, question="q"
    )

    assert outcome.calls <= budget
    for asked, answered in zip(outcome.messages[1::2], outcome.messages[2::2], strict=False):
        ids = [block["id"] for block in asked["content"] if block["type"] == "tool_use"]
        assert ids == [block["tool_use_id"] for block in answered["content"]]
    if outcome.stop == "call_limit":
        assert outcome.messages[-1]["role"] == "user"
