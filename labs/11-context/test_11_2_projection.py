"""Lab 11.2: the newest part of a session that fits, and nothing that does not belong together."""

import random

from pi_course import context
from pi_course.errors import CourseError
from pi_course.history import check_history, repair_history
from pi_course.messages import (
    ToolCall,
    UserMessage,
    assistant,
    calls_of,
    text_of,
    to_json,
    tool_result,
    user,
)
from pi_course.schema import ToolSpec
from pi_course.sessions import Entry, active_messages


def _size(part):
    """An estimate that a test can do in the head: characters, and 10 for each call."""
    if isinstance(part, str):
        return len(part)
    if isinstance(part, ToolSpec):
        return len(part.description)
    return len(text_of(part)) + 10 * len(calls_of(part))


def _path(*items):
    """A path of entries m1, m2, …: messages as they are, (kind, payload) as another kind."""
    path = []
    for number, item in enumerate(items, start=1):
        kind, payload = item if isinstance(item, tuple) else ("message", to_json(item))
        parent = path[-1].id if path else None
        path.append(Entry(f"m{number}", parent, kind, payload, number))
    return path


def _compaction(summary, first_kept_id):
    return ("compaction", {"summary": summary, "first_kept_id": first_kept_id})


def _asks(*ids):
    return assistant([ToolCall(id, "grep", {}) for id in ids], stop="tool_use", at=2)


def _answers(id, text="found"):
    return tool_result(ToolCall(id, "grep", {}), text, at=3)


def _build(path, max_tokens, **options):
    return context.build_context(
        path, max_tokens=max_tokens, **{"estimate_tokens": _size, **options}
    )


def _code(*args, **options):
    try:
        return _build(*args, **options)
    except CourseError as error:
        return error.code


def test_with_room_for_everything_everything_is_shown():
    """Prompt and messages come back as they are, and `used` counts prompt, tools and messages."""
    said = [user("question", at=1), _asks("a"), _answers("a"), assistant("answer", at=4)]
    path = _path(said[0], ("note", {"for": "nobody"}), *said[1:])
    prompt = "  Be brief.\r\n\r\n"
    tools = [ToolSpec("grep", "finds", {"type": "object"}, "read")]
    asked = []

    def size(part):
        asked.append(part)
        return _size(part)

    shown = _build(path, 100, system_prompt=prompt, tools=tools, estimate_tokens=size)
    assert shown.system_prompt == prompt
    assert shown.messages == tuple(said)
    assert shown.used == len(prompt) + 5 + 8 + 10 + 5 + 6
    assert (shown.dropped_entry_ids, shown.reason) == ((), None)
    assert all(asked.count(part) == 1 for part in [prompt, *tools, *said])
    assert _build([], 0) == context.Projection("", (), 0, (), None)


def test_the_oldest_turns_go_first_and_go_whole():
    """One token too few and the oldest turn is gone, all of it; nothing smaller slips past it."""
    path = _path(
        user("1", at=1), assistant("2", at=2),
        user("a long question", at=3), _asks("a"), _answers("a"), assistant("a long answer", at=4),
        user("five5", at=5), assistant("six666", at=6),
    )
    everything = 2 + (15 + 10 + 5 + 13) + 11
    for budget, first in [(everything, 0), (everything - 1, 2), (54, 2), (53, 6), (13, 6), (11, 6)]:
        shown = _build(path, budget)
        assert list(shown.messages) == active_messages(path)[first:], budget
        assert shown.used == sum(map(_size, shown.messages)) <= budget
        assert shown.dropped_entry_ids == tuple(entry.id for entry in path[:first])
        assert shown.reason == ("budget" if first else None)
    assert _code(path, 10) == "CONTEXT_TOO_SMALL"


def test_what_has_to_be_there_fits_or_is_an_error():
    """Prompt, tools, summary, newest turn, reserve and margin: one token short is an error."""
    tools = [ToolSpec("grep", "1234", {"type": "object"}, "read")]
    path = _path(user("old", at=1), user("123456", at=2), _compaction("so far", "m2"))
    summary = len(text_of(_build(path, 1_000).messages[0]))
    options = {"system_prompt": "12", "tools": tools, "reserved_output": 30, "safety_margin": 7}
    least = 6 + 2 + 4 + summary + 30 + 7
    assert _build(path, least, **options).used == 6 + 2 + 4 + summary
    assert _code(path, least - 1, **options) == "CONTEXT_TOO_SMALL"
    assert _code([], 1, system_prompt="12") == "CONTEXT_TOO_SMALL"
    assert _code([], 5, reserved_output=6) == "CONTEXT_TOO_SMALL"
    for bad in [-1, 1.0, True, None, "9"]:
        assert _code(path, bad) == "INVALID_BUDGET"
        assert _code(path, 99, reserved_output=bad) == "INVALID_BUDGET"
        assert _code(path, 99, safety_margin=bad) == "INVALID_BUDGET"
        assert _code(path, 99, estimate_tokens=lambda part, bad=bad: bad) == "INVALID_BUDGET"


def test_a_summary_stands_for_what_it_hides():
    """The last summary comes first, then all it kept; what it hides, older ones too, is gone."""
    said = [user(f"question {n}", at=n) for n in range(1, 7)]
    path = _path(
        said[0], said[1], said[2], _compaction("the first summary", "m2"),
        said[3], said[4], _compaction("the second summary", "m3"), said[5],
    )
    shown = _build(path, 1_000)
    assert isinstance(shown.messages[0], UserMessage)
    assert "the second summary" in text_of(shown.messages[0])
    assert shown.messages[1:] == tuple(said[2:])
    assert not any("the first summary" in text_of(message) for message in shown.messages)
    assert (shown.dropped_entry_ids, shown.reason) == (("m1", "m2"), "compaction")
    assert shown.used == sum(map(_size, shown.messages))
    tight = _build(path, _size(shown.messages[0]) + 2 * len("question 1"))
    assert tight.messages == (shown.messages[0], *said[4:])
    assert (tight.dropped_entry_ids, tight.reason) == (("m1", "m2", "m3", "m5"), "budget")
    back = _build(path[:6], 1_000)
    assert "the first summary" in text_of(back.messages[0])
    assert back.messages[1:] == tuple(said[1:5])


def test_a_compaction_keeps_a_call_with_its_results():
    """A summary that ends between a call and its results keeps the call and all its results."""
    said = [user("go", at=1), _asks("a"), _answers("a"), _asks("b", "c", "d"), _answers("b"),
            _answers("c"), _answers("d"), assistant("done", at=5)]
    for kept, first in [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3), (7, 3), (8, 7)]:
        shown = _build(_path(*said, _compaction("so far", f"m{kept}")), 1_000)
        assert shown.messages[1:] == tuple(said[first:]), kept
        assert shown.dropped_entry_ids == tuple(f"m{n}" for n in range(1, first + 1))
        assert check_history(shown.messages) == []


def test_a_compaction_that_names_no_entry_before_it_is_an_error():
    """An unknown id, one of another branch, its own and a later one are not guessed at."""
    before, after = [user("a", at=1), user("b", at=2)], user("c", at=3)
    for named in ["m99", "", "M1", "m3", "m4"]:
        path = _path(*before, _compaction("so far", named), after)
        assert _code(path, 1_000) == "UNKNOWN_ENTRY", named
    for payload in [None, {}, {"summary": "s"}, {"summary": 1, "first_kept_id": "m1"},
                    {"summary": "s", "first_kept_id": "m1", "more": 1}]:
        assert _code(_path(*before, ("compaction", payload), after), 99) == "INVALID_ENTRY"


def test_what_is_shown_is_a_legal_history():
    """Missing results are there, orphans and failed answers are not, and the entries are named."""
    said = [
        _answers("never-asked"), user("go", at=1), _asks("a", "b"), _answers("b"), _answers("a"),
        user("wait", at=2), assistant("hm", stop="aborted", at=3), _asks("lost"),
        user("again", at=4), _answers("unknown"),
    ]
    path = _path(*said)
    shown = _build(path, 1_000)
    assert check_history(said) != [] and check_history(shown.messages) == []
    assert shown.messages == repair_history(active_messages(path)).messages
    assert shown.used == sum(map(_size, shown.messages))
    assert (shown.dropped_entry_ids, shown.reason) == (("m1", "m7", "m10"), "repair")


def test_any_history_at_any_budget_is_cut_the_same_way():
    """Never over the budget, always legal, the same twice, and more room never shows less."""
    for seed in range(40):
        rng = random.Random(seed)
        path = _path(*_random_items(rng))
        wider = None
        for budget in sorted(rng.sample(range(300), 5), reverse=True):
            where = f"seed {seed}, budget {budget}"
            options = {"reserved_output": 6, "safety_margin": 7}
            shown = _code(path, budget + 13, **options)
            if shown == "CONTEXT_TOO_SMALL":
                wider = shown
                continue
            assert wider != "CONTEXT_TOO_SMALL", where
            assert shown.used == sum(map(_size, shown.messages)) <= budget, where
            assert check_history(shown.messages) == [], where
            if wider is not None:
                recent = [m for m in shown.messages if "so far" not in text_of(m)]
                assert list(wider.messages)[-len(recent) :] == recent, where
                assert set(wider.dropped_entry_ids) <= set(shown.dropped_entry_ids), where
            wider = shown
        assert wider == _code(path, budget + 13, **options), where


def _random_items(rng):
    """Turns, mostly in order: some calls without results, some results without calls."""
    items = [user("start", at=1)]
    for _ in range(rng.randrange(1, 12)):
        ids, kind = rng.sample("abc", rng.randrange(1, 4)), rng.randrange(8)
        if kind < 3:
            items += [_asks(*ids), *(_answers(id, "x" * rng.randrange(30)) for id in ids)]
        elif kind == 3:
            items.append(rng.choice([_answers(ids[0]), _asks(*ids)]))
        elif kind == 4:
            items.append(_compaction("so far", f"m{rng.randrange(1, len(items) + 1)}"))
        else:
            words = "word" * rng.randrange(1, 10)
            items.append(rng.choice([user(words, at=2), assistant(words, at=3)]))
    return items
