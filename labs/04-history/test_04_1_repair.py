"""Lab 04.1: what is wrong with a history, and a history put right."""

import random
from collections import Counter

from pi_course import history, messages
from pi_course.messages import AssistantMessage, TextBlock, ToolCall, ToolResultMessage, UserMessage


def _user(text="go on"):
    return UserMessage((TextBlock(text),), 1)


def _says(text="done", stop="stop"):
    return AssistantMessage((TextBlock(text),), stop, 2)


def _asks(*ids, stop="tool_use", name="grep"):
    return AssistantMessage(tuple(ToolCall(id, name, {"q": id}) for id in ids), stop, 2)


def _answer(id, text="found", name="grep", details=None):
    return ToolResultMessage(id, name, (TextBlock(text),), False, details, 3)


def _synthetic(id):
    return ToolResultMessage(id, "grep", (TextBlock("lost"),), True, history.SYNTHETIC, 0)


def _random_history(rng):
    """Messages of every kind in no sensible order; the ids are few, so they collide."""
    ids = ["a", "b", "c"]
    made = []
    for _ in range(rng.randrange(12)):
        kind = rng.randrange(6)
        if kind == 0:
            made.append(_user(str(len(made))))
        elif kind == 1:
            made.append(_says(stop=rng.choice(["stop", "length", "error", "aborted"])))
        elif kind == 2:
            stop = rng.choice(["tool_use", "tool_use", "aborted"])
            made.append(_asks(*rng.sample(ids, rng.randrange(1, 4)), stop=stop))
        elif kind == 3:
            made.append(_synthetic(rng.choice(ids)))
        else:
            made.append(
                _answer(rng.choice(ids), str(len(made)), rng.choice(["grep", "grep", "ls"]))
            )
    return made


def test_a_legal_history_is_left_alone():
    """Two calls with their two results, in order, are no problem and nothing to repair."""
    legal = [_user(), _asks("a", "b"), _answer("a"), _answer("b"), _says(), _user(), _says()]
    assert history.check_history(legal) == []
    repair = history.repair_history(legal)
    assert repair.messages == tuple(legal)
    assert dict(repair.counts) == {}
    assert history.repair_history([]).messages == ()


def test_every_breach_is_named_with_its_place_and_its_call():
    """Each broken law has a code, the index of the message to blame, and the call's id."""
    P = history.Problem
    for broken, problems in [
        ([_asks("a", "b"), _answer("a"), _user()], [P("MISSING_RESULT", 0, "b")]),
        ([_user(), _answer("a")], [P("ORPHAN_RESULT", 1, "a")]),
        ([_asks("a"), _answer("a"), _answer("a")], [P("DUPLICATE_RESULT", 2, "a")]),
        ([_asks("a"), _user(), _answer("a")], [P("MISPLACED_RESULT", 2, "a")]),
        ([_user(), _says(stop="error")], [P("UNREPLAYABLE", 1, "")]),
        (
            [_asks("a", "b", "c"), _answer("a", name="ls"), _says(stop="aborted")],
            [
                P("MISSING_RESULT", 0, "a"),
                P("MISSING_RESULT", 0, "b"),
                P("MISSING_RESULT", 0, "c"),
                P("ORPHAN_RESULT", 1, "a"),
                P("UNREPLAYABLE", 2, ""),
            ],
        ),
        (
            [_asks("a", "b"), _answer("b"), _answer("a")],
            [P("MISPLACED_RESULT", 1, "b"), P("MISPLACED_RESULT", 2, "a")],
        ),
    ]:
        assert history.check_history(broken) == problems, broken


def test_a_call_without_a_result_gets_an_error_in_its_place():
    """The made-up result stands directly behind its call, is an error, and says what it is."""
    asks = _asks("a", "b")
    repair = history.repair_history([_user(), asks, _answer("b"), _user("next")], at=70)
    assert repair.messages[:2] == (_user(), asks)
    assert repair.messages[3:] == (_answer("b"), _user("next"))
    lost = repair.messages[2]
    assert (lost.role, lost.call_id, lost.tool_name) == ("tool_result", "a", "grep")
    assert (lost.is_error, lost.details, lost.timestamp) == (True, history.SYNTHETIC, 70)
    assert dict(repair.counts) == {"MISSING_RESULT": 1}


def test_results_of_parallel_calls_move_into_call_order():
    """Whichever tool finished first, the results stand in the order of the calls."""
    asks = _asks("a", "b", "c")
    finished = [_answer("c"), _answer("a"), _answer("b")]
    repair = history.repair_history([asks, *finished, _says()])
    assert repair.messages == (asks, _answer("a"), _answer("b"), _answer("c"), _says())


def test_a_late_result_moves_up_and_what_stood_between_is_kept():
    """A result that comes after a user's words, or a whole turn, goes back to its call."""
    asks = _asks("a")
    repair = history.repair_history([asks, _user("hurry"), _answer("a"), _says()])
    assert repair.messages == (asks, _answer("a"), _user("hurry"), _says())
    repair = history.repair_history([asks, _says("meanwhile"), _user(), _answer("a")])
    assert repair.messages == (asks, _answer("a"), _says("meanwhile"), _user())


def test_a_real_result_beats_a_made_up_one():
    """Of several results of one call the first real one stays, wherever a made-up one stands."""
    asks, real = _asks("a"), _answer("a", "real")
    for results in [
        [_synthetic("a"), real],
        [real, _synthetic("a")],
        [_synthetic("a"), real, _answer("a", "again")],
    ]:
        repair = history.repair_history([asks, *results, _says()])
        assert repair.messages == (asks, real, _says()), results
    assert history.repair_history([asks, _synthetic("a")]).messages == (asks, _synthetic("a"))


def test_an_id_that_comes_back_stays_with_its_turn():
    """A result belongs to the nearest call before it with its id and name, not to every one."""
    first, second = _answer("a", "one"), _answer("a", "two")
    turns = [_user("1"), _asks("a"), first, _user("2"), _asks("a"), second, _says()]
    assert history.check_history(turns) == []
    assert history.repair_history(turns).messages == tuple(turns)
    repair = history.repair_history([_asks("a"), _asks("a"), second])
    assert [message.role for message in repair.messages] == ["assistant", "tool_result"] * 2
    assert repair.messages[1].details == history.SYNTHETIC
    assert repair.messages[3] == second


def test_an_aborted_message_goes_with_its_results():
    """What ended in error or abort is never replayed, and its results answer nobody else."""
    for stop in ["error", "aborted"]:
        broken = [_user(), _asks("a", stop=stop), _answer("a"), _user("again"), _says()]
        repair = history.repair_history(broken)
        assert repair.messages == (_user(), _user("again"), _says())
        assert dict(repair.counts) == {"UNREPLAYABLE": 1, "ORPHAN_RESULT": 1}

        broken = [_asks("a"), _asks("a", stop=stop), _answer("a")]
        repair = history.repair_history(broken)
        assert [message.role for message in repair.messages] == ["assistant", "tool_result"]
        assert repair.messages[1].details == history.SYNTHETIC


def test_repair_makes_any_history_legal_once_and_for_all():
    """Whatever comes in, what comes out has no problem, and a second repair changes nothing."""
    for seed in range(300):
        given = _random_history(random.Random(seed))
        before = list(given)
        problems = history.check_history(given)
        once = history.repair_history(given, at=10)
        twice = history.repair_history(once.messages, at=20)
        assert given == before, f"seed {seed}"
        assert history.check_history(once.messages) == [], f"seed {seed}"
        assert twice.messages == once.messages, f"seed {seed}"
        assert dict(twice.counts) == {}, f"seed {seed}"
        assert dict(once.counts) == Counter(problem.code for problem in problems), f"seed {seed}"
        assert (problems == []) == (once.messages == tuple(given)), f"seed {seed}"
        said = [message for message in given if message.role == "user"]
        assert [m for m in once.messages if m.role == "user"] == said, f"seed {seed}"
        assert all(messages.validate_message(message) for message in once.messages)
