"""Probes: asked in processes of their own, compared as texts; silence equals nothing."""

from __future__ import annotations

import contextlib
import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.answers import TOGETHER, Answers, Key, Question, read_answers
from course.box import Box
from course.errors import CourseBroken, Unavailable
from course.manifest import Course, load_course
from course.probe_driver import Salt, canonical, plain
from course.probe_proof import SALTS, probe_proof
from course.probes import Probe, agreed, ask, asked, load_probes, reference_answers
from course.sandbox import SandboxResult
from course.snapshot import checkpoint

PROBES = "labs/02-report/hidden/probes.py"
MODULE = "src/tally/report.py"
QUESTION = Question("", {"probe_a": "1", "probe_b": "1"}, ("s", "t"), ("m",), 6.0)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def files_of(course: Course) -> dict[str, bytes]:
    return {path: file.data for path, file in checkpoint(course, "02").items()}


def answers(course: Course, more: str = "", **how: Any) -> Answers:
    """What the reference answers, with `more` code at the end of its module."""
    chapter, files = course.chapter("02"), files_of(course)
    probes = load_probes(course, chapter)
    assert probes
    return ask(Box(), files | {MODULE: files[MODULE] + more.encode()},
               asked(chapter, probes, ("one", "two"), 30.0, **how))


def seen(*lines: object, stopped: Any = "", status: int = 0, ready: bool = True) -> SandboxResult:
    """A run whose program wrote these lines."""
    first = [{"event": "ready"}] if ready else []
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode()
           for line in (*first, *lines)]
    return SandboxResult(status, b"\n".join(raw), b"", False, 1.0, stopped)


def test_the_reference_answers_everything_the_same_way_twice(tiny: Course) -> None:
    """Under both salts, together or alone, and each salt gives other answers."""
    together, alone = answers(tiny, group=TOGETHER), answers(tiny)
    assert together.observed == alone.observed and len(alone.observed) == 10
    assert not alone.problems and not alone.cause and alone.imported
    assert all(alone.observed[name, 0] != alone.observed[name, 1] for name, _ in alone.observed)


def test_a_crash_costs_one_probe(tiny: Course) -> None:
    """Also where a dozen were to share the process that ended."""
    crash = "\nimport os\nReport.lines = lambda self: os._exit(0)\n"
    for group in (1, TOGETHER):
        found = answers(tiny, crash, group=group)
        assert {name for name, _ in found.observed} == {"probe_02_1_order", "probe_02_1_refusal"}
        assert set(found.problems.values()) == {"silent"} and not found.late


def test_a_loop_costs_one_probe_and_is_waited_for_once(tiny: Course) -> None:
    """Late under the first salt is late under both."""
    loop = "\ndef _lines(self):\n    while True: pass\nReport.lines = _lines\n"
    chapter, files = tiny.chapter("02"), files_of(tiny)
    probes = load_probes(tiny, chapter)
    assert probes
    found = ask(Box(), files | {MODULE: files[MODULE] + loop.encode()},
                asked(chapter, probes, ("one", "two"), 6.0, group=TOGETHER))
    assert {name for name, _ in found.observed} == {"probe_02_1_order", "probe_02_1_refusal"}
    assert found.late and set(found.problems.values()) == {"late"}
    assert found.duration_s < 5.5


def test_alone_means_that_no_probe_sees_what_another_left(tiny: Course) -> None:
    """A module that counts its calls answers every probe as if it were the first."""
    counting = """
_calls = []
_plain = report_on
def report_on(text):
    _calls.append(text)
    return _plain(text if len(_calls) < 6 else "other words")
"""
    assert not answers(tiny, counting).problems
    assert answers(tiny, counting).observed == answers(tiny).observed


def test_code_that_needs_its_thread_has_it(tiny: Course) -> None:
    """A fork would lose it, so everything is imported where it is asked."""
    threaded = """
import queue, threading
_in, _out = queue.Queue(), queue.Queue()
_lines = Report.lines
threading.Thread(target=lambda: [_out.put(_lines(_in.get())) for _ in iter(int, 1)],
                 daemon=True).start()
Report.lines = lambda self: (_in.put(self), _out.get())[1]
"""
    assert answers(tiny, threaded).observed == answers(tiny).observed


@pytest.mark.parametrize(("code", "cause", "late"), [
    ("1 / 0", "ZeroDivisionError", False), ("raise SystemExit", "SystemExit", False),
    ("import os; os._exit(3)", "status of its own", False),
    ("while True: pass", "while it was imported", True),
])
def test_what_cannot_be_imported_answers_nothing(
    code: str, cause: str, late: bool, tiny: Course
) -> None:
    """And says why."""
    chapter, files = tiny.chapter("02"), files_of(tiny)
    probes = load_probes(tiny, chapter)
    assert probes
    found = ask(Box(), files | {MODULE: code.encode()}, asked(chapter, probes, ("s",), 3.0))
    assert not found.observed and not found.imported and cause in found.cause
    assert found.late is late and len(found.problems) == 5


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60) | json_values.map(lambda v: json.dumps(v).encode())
                | st.fixed_dictionaries({}, optional={
                    "probe": st.sampled_from(["probe_a", "probe_x"]) | json_values,
                    "salt": st.integers(-1, 3) | json_values,
                    "observation": json_values, "problem": json_values, "event": json_values,
                }).map(lambda v: json.dumps(v).encode()), max_size=6))
def test_whatever_the_program_writes_is_read(lines: list[bytes]) -> None:
    """Only texts for what was asked are observations; every question has an answer or a problem."""
    found = read_answers(QUESTION, seen(*lines))
    keys = set(QUESTION.keys)
    assert set(found.observed) | set(found.problems) == keys
    assert not set(found.observed) & set(found.problems)
    assert all(type(text) is str for text in found.observed.values())


def test_two_answers_are_none(tiny: Course) -> None:
    """Unless they are the same."""
    line: dict[str, object] = {"probe": "probe_a", "salt": 0, "observation": "1"}
    assert read_answers(QUESTION, seen(line, line)).observed == {("probe_a", 0): "1"}
    found = read_answers(QUESTION, seen(line, line | {"observation": "2"}))
    assert not found.observed and found.problems["probe_a", 0] == "contradictory"


def test_lines_that_are_too_deep_or_too_long_are_nothing() -> None:
    """The parser is not tried on them."""
    long = {"probe": "probe_a", "salt": 0, "observation": "x" * 300_000}
    assert not read_answers(QUESTION, seen(b"[" * 100_000, b"{\"a\":" * 30_000, long)).observed


def test_a_driver_that_did_not_start_is_the_graders_fault() -> None:
    """Before any code of the submission ran."""
    with pytest.raises(Unavailable):
        read_answers(QUESTION, seen(ready=False))


@pytest.mark.parametrize("stopped", ["time", "memory", "files", "output"])
def test_a_run_that_was_stopped_says_by_what(stopped: str) -> None:
    """And only the clock makes it late."""
    found = read_answers(QUESTION, seen({"event": "imported"}, stopped=stopped, status=137))
    assert found.cause and found.late is (stopped == "time")


def test_silence_never_equals_silence() -> None:
    """No reference, no agreement; one salt missing, no agreement."""
    probe, nothing = Probe("probe_a", "1", "a"), Answers()
    assert not agreed(probe, {}, nothing)
    reference: dict[Key, str] = {("probe_a", 0): "1", ("probe_a", 1): "2"}
    assert not agreed(probe, reference, nothing)
    assert not agreed(probe, reference, Answers({("probe_a", 0): "1"}))
    assert agreed(probe, reference, Answers(reference))


def test_a_reference_that_changes_its_mind_is_no_reference() -> None:
    """Nor one that is silent; one slip in three is forgiven."""
    keys = list(QUESTION.keys)

    def run(*rounds: dict[Key, str]) -> dict[Key, str]:
        left = [Answers(one) for one in rounds]
        return reference_answers(QUESTION, lambda: left.pop(0))

    right = dict.fromkeys(keys, "1")
    slip = right | {keys[0]: "2"}
    assert run(right, right) == run(right, slip, right) == right
    for rounds in ((right, slip, right | {keys[0]: "3"}), ({}, {}, {})):
        with pytest.raises(Unavailable, match="same way twice"):
            run(*rounds)


@given(json_values)
def test_plain_values_stay_what_they_are(value: Any) -> None:
    """As JSON reads them back."""
    assert json.loads(canonical(plain(value))) == value


def test_everything_else_is_only_a_name() -> None:
    """Subclasses, cycles and giants are not asked what they are."""
    class Liar(str):
        def __eq__(self, other: object) -> bool:
            return True
        __hash__ = str.__hash__
    cycle: list[Any] = []
    cycle.append(cycle)
    assert plain([Liar("x"), (1, True), {1: b""}]) == [
        {"<object>": "Liar"}, [1, True], {"<dict>": [[1, {"<object>": "bytes"}]]}]
    assert "too large" in canonical(plain(cycle))
    assert plain(list(range(10**6))) == {"<object>": "too large"}
    assert len(canonical(plain([[[0] * 100] * 100] * 100))) < 10**6
    assert canonical(plain({2: "b", "a": 1})) == canonical(plain({"a": 1, 2: "b"}))


@given(st.text(min_size=1), st.integers(0, 50))
def test_a_salt_is_fresh_and_repeatable(secret: str, count: int) -> None:
    """The same secret gives the same words, and none of them twice."""
    first, second = Salt(secret, Path()), Salt(secret, Path())
    words = first.words(count)
    assert words == second.words(count) and len(set(words)) == count
    assert set("".join(words)) <= set(string.ascii_lowercase)
    assert first.number(3, 5) == second.number(3, 5)
    assert sorted(first.shuffled(words)) == sorted(words)
    assert first.choice([secret]) == secret


def test_a_coroutine_is_waited_for_only_so_long() -> None:
    """Even one that swallows its cancellation."""
    import asyncio

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def quick() -> int:
        return 4

    salt = Salt("x", Path())
    assert salt.run(quick()) == 4
    with pytest.raises(TimeoutError):
        salt.run(stubborn(), seconds=0.05)


def test_raises_sees_exceptions_and_nothing_else() -> None:
    """SystemExit and KeyboardInterrupt go through."""
    salt = Salt("x", Path())
    assert salt.raises(int, "x") and not salt.raises(int, "1")
    with pytest.raises(SystemExit):
        salt.raises(exit)


BROKEN: dict[str, Callable[[str], str]] = {
    "is not readable Python": lambda source: source + "\ndef probe_",
    "not named probe_": lambda source: source + '\ndef probe_09_1_x(salt):\n    """X."""\n',
    "needs a docstring": lambda source: source + "\ndef probe_02_1_x(salt):\n    pass\n",
    "must take salt": lambda source: source + '\ndef probe_02_1_x():\n    """X."""\n',
    "one name": lambda source: source + '\ndef probe_02_1_order(salt):\n    """X."""\n',
    "has no probe": lambda source: source.replace("probe_02_2", "question_02_2"),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_file_that_is_not_sound_is_refused_by_name(said: str, own_tiny: Path) -> None:
    """With what is wrong in it."""
    path = own_tiny / PROBES
    path.write_text(BROKEN[said](path.read_text("utf-8")), "utf-8")
    course = load_course(own_tiny)
    with pytest.raises(CourseBroken, match=said) as found:
        load_probes(course, course.chapter("02"))
    assert PROBES in found.value.message


def proofs(root: Path) -> list[str]:
    course = load_course(root)
    proof = probe_proof(course, course.chapter("02"), checkpoint(course, "02"))
    assert proof
    return [problem for _, prove in proof.proofs() for problem in prove()]


def test_weak_probes_are_found(own_tiny: Path) -> None:
    """A constant answer, a fault that none refuses, a salt.raises that decides alone."""
    (own_tiny / PROBES).write_text('''
def probe_02_1_constant(salt):
    """X."""
    return 1


def probe_02_2_blind(salt):
    """X."""
    return salt.word()


def probe_02_3_raises(salt):
    """X."""
    from tally.report import report_on
    return [salt.word(), salt.raises(report_on, "1")]
''', "utf-8")
    found = "\n".join(proofs(own_tiny))
    assert "no observation of lab 02.1 depends on the salt" in found
    assert "lab 02.2 refuses fault no-numbers" in found
    assert "lab 02.3: its scaffold passes with a salt.raises that always says True" in found
    assert "lab 02.3: its scaffold passes with a salt.raises that always says False" not in found


def test_the_proofs_of_the_tiny_course_hold(tiny: Course) -> None:
    """As `course verify` runs them."""
    assert proofs(tiny.root) == [] and len(set(SALTS)) == 2
