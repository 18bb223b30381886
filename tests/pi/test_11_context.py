"""Chapter 11: a thousand random histories, each within its budget; and ten thousand entries."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from pi_course.context import Projection, build_context, estimate_tokens
from pi_course.history import repair_history
from pi_course.messages import (
    Message,
    TextBlock,
    ToolCall,
    UserMessage,
    assistant,
    calls_of,
    to_json,
    tool_result,
    user,
)
from pi_course.schema import ToolSpec
from pi_course.sessions import Entry, active_messages

from tests.pi.arbitrary import is_legal, outcome

HISTORIES = 1_000
TOOLS = (ToolSpec("read", "看", {"type": "object"}, "read"),)
PROMPT = "简短地说。"


def random_path(seed: int) -> list[Entry]:
    """A session as bad as they come: results lost, doubled, late and strange, summaries, notes."""
    chance = random.Random(seed)
    path: list[Entry] = []
    open_calls: list[ToolCall] = []
    for number in range(chance.randint(0, 14)):
        said: Message | None = None
        kind = "message"
        payload: object = None
        dice = chance.random()
        if dice < 0.25:
            said = user(chance.choice(["", "问", "a longer question " * 3]), at=number)
        elif dice < 0.55:
            names = ["read", "write"]
            calls = [ToolCall(chance.choice("abcd"), chance.choice(names), {"n": number})
                     for _ in range(chance.choice([0, 0, 1, 1, 2]))]  # fmt: skip
            calls = list({call.id: call for call in calls}.values())
            open_calls += calls
            stop = chance.choice(["tool_use"] * 6 + ["error", "aborted", "length"])
            said = assistant([TextBlock("答" * chance.randint(0, 9)), *calls], stop=stop, at=number)
        elif dice < 0.88:
            strange = [ToolCall(chance.choice("abxy"), "read", {})]
            call = chance.choice((open_calls[-2:] or strange) + strange * (chance.random() < 0.2))
            said = tool_result(call, "果" * chance.randint(0, 20), at=number)
        elif dice < 0.94 and path:
            first = chance.choice(path).id
            kind, payload = "compaction", {"summary": "前情", "first_kept_id": first}
        else:
            kind, payload = "note", "for nobody"
        parent = path[-1].id if path else None
        body: Any = payload if said is None else to_json(said)
        path.append(Entry(f"e{number}", parent, kind, body, number))
    return path


def build(path: list[Entry], budget: int, **options: Any) -> Projection | str:
    """What is shown within the budget, or the code that says why nothing is."""
    options = {"system_prompt": PROMPT, "tools": TOOLS} | options
    found = outcome(lambda: build_context(path, max_tokens=budget, **options))
    assert isinstance(found, (Projection, str))
    return found


def price(shown: Projection) -> int:
    """What is shown, added up a second time."""
    parts = [shown.system_prompt, *TOOLS, *shown.messages]
    return sum(map(estimate_tokens, parts))


def lost_with_room(path: list[Entry], everything: Projection) -> set[str]:
    """The entries that are lost though they stand behind the summary and survive repair."""
    plain = [entry if entry.kind == "message" else replace(entry, kind="note") for entry in path]
    repaired = build(plain, 100_000)
    assert isinstance(repaired, Projection)
    summaries: list[Any] = [entry.payload for entry in path if entry.kind == "compaction"]
    ids = [entry.id for entry in path]
    behind = ids[ids.index(summaries[-1]["first_kept_id"]) if summaries else 0 :]
    return set(behind) & set(everything.dropped_entry_ids) - set(repaired.dropped_entry_ids)


def has_summary(path: list[Entry]) -> bool:
    return any(entry.kind == "compaction" for entry in path)


@pytest.mark.parametrize("hundred", range(0, HISTORIES, 100))
def test_a_thousand_random_histories_fit_and_are_legal_and_grow_with_the_budget(
    hundred: int,
) -> None:
    """Never over budget, no result without its call, more room never shows less, twice same."""
    for seed in range(hundred, hundred + 100):
        path = random_path(seed)
        chance = random.Random(seed)
        everything = build(path, 100_000)
        assert isinstance(everything, Projection)
        budgets = sorted({0, everything.used - 1, everything.used,
                          *(chance.randint(0, everything.used) for _ in range(3))})  # fmt: skip
        less: Projection | None = None
        for budget in budgets:
            shown = build(path, budget)
            if isinstance(shown, str):
                assert shown == "CONTEXT_TOO_SMALL"
                assert less is None, (seed, budget)
                continue
            assert shown.used == price(shown) <= budget, (seed, budget)
            assert is_legal(shown.messages), (seed, budget)
            summary = shown.messages[: has_summary(path)]
            if less is not None:
                inner = less.messages[len(summary) :]
                assert shown.messages[: len(summary)] == less.messages[: len(summary)]
                assert shown.messages[len(shown.messages) - len(inner) :] == inner, (seed, budget)
                assert set(shown.dropped_entry_ids) <= set(less.dropped_entry_ids)
            less = shown
        assert less == everything, seed
        assert lost_with_room(path, everything) == set(), seed
        assert build(path, budgets[-1]) == everything, seed


@pytest.mark.parametrize("hundred", range(0, HISTORIES, 250))
def test_the_same_path_gives_the_same_output_however_it_is_cut_up(hundred: int) -> None:
    """Same arguments, same projection; reserve and margin are nothing but a smaller budget."""
    for seed in range(hundred, hundred + 250, 2):
        path = random_path(seed)
        before = list(path)
        room = random.Random(seed).randint(0, 120)
        first = build(path, room)
        assert build(path, room) == first, seed
        assert build(random_path(seed), room + 7, reserved_output=3, safety_margin=4) == first
        assert path == before


@pytest.mark.parametrize("hundred", range(0, HISTORIES, 250))
def test_with_room_for_all_it_is_the_repaired_history_and_turns_stay_whole(hundred: int) -> None:
    """Without a summary and with room nothing is missing; with less, what is left begins a turn."""
    for seed in range(hundred, hundred + 250):
        path = random_path(seed)
        if has_summary(path):
            continue
        repaired = repair_history(active_messages(path)).messages
        everything = build(path, 100_000)
        assert isinstance(everything, Projection)
        assert everything.messages == repaired, seed
        assert everything.reason in (None, "repair")
        shown = build(path, everything.used - 1)
        if isinstance(shown, Projection) and repaired:
            assert shown.reason == "budget", seed
            assert isinstance(shown.messages[0], UserMessage), seed
            recorded = {entry.id for entry in path if entry.kind == "message"}
            assert recorded > set(shown.dropped_entry_ids) > set(everything.dropped_entry_ids)


def long_path(entries: int) -> list[Entry]:
    """Turns of a question, a call, its result and an answer; the end sums up the first half."""
    path: list[Entry] = []
    for number in range(entries - 1):
        call = ToolCall(f"c{number // 4}", "read", {"n": 1})
        turn: list[Message] = [
            user("q", at=1),
            assistant([call], stop="tool_use", at=1),
            tool_result(call, "r", at=1),
            assistant("a", at=1),
        ]
        parent = path[-1].id if path else None
        path.append(Entry(f"e{number}", parent, "message", to_json(turn[number % 4]), number))
    body: Any = {"summary": "s", "first_kept_id": path[entries // 2].id}
    return [*path, Entry("k", path[-1].id, "compaction", body, 1)]


def steps_of(work: Callable[[], object]) -> int:
    """The lines of chapters 04 and 11, and the calls of others, that `work` runs: a cost in steps.

    It is the same on every machine, however busy.
    """
    count = 0

    def line(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def enter(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        is_ours = frame.f_code.co_filename.endswith(("context.py", "history.py"))
        return line if is_ours else None

    former = sys.gettrace()
    sys.settrace(enter)
    try:
        work()
    finally:
        sys.settrace(former)
    return count


@pytest.mark.parametrize(("room", "most"), [(40, 50), (10_000_000, 5_001)])
def test_no_message_is_estimated_twice_and_none_without_need(room: int, most: int) -> None:
    """Of 10,000 entries each one that may be shown is estimated once, until the room is used up."""
    asked = 0

    def estimate(part: object) -> int:
        nonlocal asked
        asked += 1
        return 1

    shown = build_context(long_path(10_000), max_tokens=room, estimate_tokens=estimate)
    assert shown.used <= room
    assert asked <= most


def test_cost_grows_linearly_to_ten_thousand_entries() -> None:
    """Ten times the entries take ten times the steps."""

    def cost(entries: int) -> int:
        path = long_path(entries)
        return steps_of(lambda: build_context(path, max_tokens=10_000_000))

    assert cost(10_000) < 10.5 * cost(1_000)


def test_every_call_that_is_shown_has_its_result_behind_it() -> None:
    """The results shown pair with the calls shown, one to one, in all thousand histories."""
    shown_calls = 0
    for seed in range(HISTORIES):
        shown = build(random_path(seed), 60)
        if isinstance(shown, Projection):
            calls = [call.id for message in shown.messages for call in calls_of(message)]
            results = [getattr(message, "call_id", None) for message in shown.messages]
            assert [one for one in results if one is not None] == calls, seed
            shown_calls += len(calls)
    assert shown_calls > 100
