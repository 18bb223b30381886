"""The plan: its form, and that only requests carry it."""

from __future__ import annotations

from copy import deepcopy

import pytest
from harness.messages import Message
from harness.plan import MAX_STEPS, PlanState, prepare_messages, update_plan


def test_plan_is_added_to_a_copy_of_the_last_message() -> None:
    """The request's last message carries the plan after its results; the history does not."""
    result = {"type": "tool_result", "tool_use_id": "1", "content": "x", "is_error": False}
    for content in ("question", [result]):
        history: list[Message] = [{"role": "user", "content": content}]
        before = deepcopy(history)
        messages = prepare_messages(history, PlanState("[ ] one"))
        assert history == before
        assert messages[-1]["content"][-1]["type"] == "text"
        assert "[ ] one" in messages[-1]["content"][-1]["text"]
        messages[-1]["content"].clear()
        assert history == before


def test_no_plan_adds_nothing() -> None:
    """Without a plan the request is the history."""
    history: list[Message] = [{"role": "user", "content": "question"}]
    assert prepare_messages(history, PlanState()) == history


def test_new_plan_replaces_the_old() -> None:
    """After an update only the new steps are there, and a bad update leaves them alone."""
    state = PlanState()
    update_plan(state, "[ ] one\n[ ] two")
    update_plan(state, "[x] one")
    with pytest.raises(ValueError):
        update_plan(state, "no mark")
    assert state.steps == "[x] one"


@pytest.mark.parametrize("steps", ["", "one", "[y] one", "[ ]one", "[ ] ", "[ ] one\n\n[ ] two"])
def test_steps_have_a_form(steps: str) -> None:
    """Each line needs its mark and a text."""
    with pytest.raises(ValueError):
        update_plan(PlanState(), steps)


def test_number_of_steps_has_a_limit() -> None:
    """MAX_STEPS steps are a plan, one more is not."""
    update_plan(PlanState(), "\n".join(["[ ] step"] * MAX_STEPS))
    with pytest.raises(ValueError):
        update_plan(PlanState(), "\n".join(["[ ] step"] * (MAX_STEPS + 1)))
