"""Chapter 04: any history can be put right, once, and only where it was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pi_course.history import SYNTHETIC, check_history, repair_history, to_provider
from pi_course.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    assistant,
    calls_of,
    to_json,
    tool_result,
    user,
)

from tests.pi.arbitrary import call_ids, examples, histories, is_legal, tool_names


@examples(120)
@given(histories)
def test_repair_makes_any_history_legal_and_then_nothing_more(history: list[Message]) -> None:
    """The result is legal by a law written apart; repaired again it is the same, to the object."""
    before = [to_json(message) for message in history]
    repaired = repair_history(history, at=7).messages
    assert is_legal(repaired)
    again = repair_history(repaired, at=8)
    assert len(again.messages) == len(repaired)
    assert all(a is b for a, b in zip(again.messages, repaired, strict=True))
    assert again.counts == {}
    assert [to_json(message) for message in history] == before


@st.composite
def nearly_legal(draw: st.DrawFn) -> list[Message]:
    """A legal history in which one message has moved, is gone or stands twice."""
    history: list[Message] = [user("q", at=1)]
    for ids in draw(st.lists(st.lists(call_ids, max_size=3, unique=True), min_size=1, max_size=3)):
        calls = [ToolCall(call_id, draw(tool_names), {}) for call_id in ids]
        history.append(assistant(calls, stop="tool_use", at=1))
        history += [tool_result(call, "r", at=1) for call in calls]
    place = draw(st.integers(0, len(history) - 1))
    message = history[place]
    if draw(st.booleans()):
        del history[place]
    for copy in range(draw(st.integers(0, 2))):
        again = replace(message, timestamp=90 + copy)
        if isinstance(again, ToolResultMessage):
            again = replace(again, details=draw(st.sampled_from([None, SYNTHETIC])))
        history.insert(draw(st.integers(0, len(history))), again)
    return history


@examples(200)
@given(histories | nearly_legal() | nearly_legal())
def test_what_check_finds_is_what_repair_puts_right(history: list[Message]) -> None:
    """check_history is empty exactly for legal histories, and repair counts the same problems."""
    problems = check_history(history)
    assert (problems == []) == is_legal(history)
    repair = repair_history(history)
    assert dict(repair.counts) == dict(Counter(problem.code for problem in problems))
    assert [problem.index for problem in problems] == sorted(problem.index for problem in problems)
    if not problems:
        assert repair.messages == tuple(history)


@examples(200)
@given(histories | nearly_legal() | nearly_legal())
def test_repair_says_nothing_new_and_forgets_nothing_that_was_said(history: list[Message]) -> None:
    """Users and good answers keep their order; a result is recorded, or owns up to be none."""

    def said(messages: Sequence[Message]) -> list[int]:
        return [id(message) for message in messages
                if not isinstance(message, ToolResultMessage)
                and not (isinstance(message, AssistantMessage)
                         and message.stop in ("error", "aborted"))]  # fmt: skip

    repaired = repair_history(history, at=7).messages
    assert said(repaired) == said(history)
    recorded = {id(message) for message in history}
    made = [message for message in repaired if id(message) not in recorded]
    for message in made:
        assert isinstance(message, ToolResultMessage)
        assert (message.details, message.is_error, message.timestamp) == (SYNTHETIC, True, 7)
    # A result answers the nearest call before it that has its id and its name.
    answers: dict[tuple[str, str], list[ToolResultMessage]] = {}
    wanted: list[list[ToolResultMessage]] = []
    for message in history:
        for call in calls_of(message):
            mine = answers[call.id, call.name] = []
            wanted += [mine] if id(message) in said(history) else []
        if isinstance(message, ToolResultMessage):
            answers.setdefault((message.call_id, message.tool_name), []).append(message)
    shown = [message for message in repaired if isinstance(message, ToolResultMessage)]
    for result, found in zip(shown, wanted, strict=True):
        real = [one for one in found if one.details != SYNTHETIC]
        assert result is (real or found or made)[0] or (not found and id(result) not in recorded)


@examples(80)
@given(histories)
def test_a_repaired_history_can_be_sent_in_every_dialect(history: list[Message]) -> None:
    """Each call goes out with its result right behind it, and "blocks" alternates strictly."""
    repaired = repair_history(history).messages
    wanted = [call.id for message in repaired for call in calls_of(message)]
    blocks = to_provider(repaired, "blocks")
    roles = [message["role"] for message in blocks]
    assert all(a != b for a, b in pairwise(roles))
    every = [block for message in blocks for block in message["content"]]
    assert [block["id"] for block in every if block["type"] == "tool_use"] == wanted
    assert [b["tool_use_id"] for b in every if b["type"] == "tool_result"] == wanted
    waiting: list[str] = []
    for message in to_provider(repaired, "chat"):
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert waiting == []
