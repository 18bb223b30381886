"""Folding events: silence is never a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from course.events import Ending, fold
from course.results import Outcome

NODE = "tests/test_x.py::test_a"
OTHER = "tests/test_x.py::test_b"
SOURCES = [Path("/desk/src"), Path("/desk")]


def passing(node: str = NODE) -> list[dict[str, Any]]:
    """All that a child says about a test that passed."""
    reports = [{"event": "report", "node": node, "when": when, "outcome": "passed",
                "duration": 0.1, "error": None} for when in ("setup", "call", "teardown")]
    return [{"event": "start", "node": node, "offset": 0}, *reports,
            {"event": "end", "node": node, "offset": 5}]


def outcome(events: list[dict[str, Any]], ending: Ending, node: str = NODE) -> Outcome | None:
    case = fold(events, [NODE, OTHER], ending, SOURCES).cases.get(node)
    return case.outcome if case else None


def test_a_complete_story_is_a_pass() -> None:
    """Started, every phase passed, ended."""
    assert outcome(passing(), Ending("finished")) is Outcome.PASSED


@given(st.sampled_from(range(5)), st.sampled_from(["finished", "died", "timeout"]))
def test_a_story_cut_anywhere_is_no_pass(length: int, how: str) -> None:
    """Whatever is missing at the end, and however the child ended."""
    assert outcome(passing()[:length], Ending(how, status=0)) is not Outcome.PASSED


@given(st.integers(-64, 255), st.lists(st.sampled_from(passing()), max_size=4))
def test_an_exit_status_never_makes_a_pass(status: int, events: list[dict[str, Any]]) -> None:
    """Not even 0 with some of the events there."""
    assert outcome(events, Ending("died", status=status)) is not Outcome.PASSED


@given(st.sampled_from(["setup", "call", "teardown"]), st.sampled_from(["failed", "skipped"]))
def test_any_phase_that_did_not_pass_decides(when: str, how: str) -> None:
    """A failing set-up is an error, a skip is never a pass."""
    events = passing()
    for event in events:
        if event.get("when") == when:
            event |= {"outcome": how, "error": {"type": "E", "message": "m", "frames": []}}
    wanted = Outcome.SKIPPED if how == "skipped" else (
        Outcome.FAILED if when == "call" else Outcome.ERROR)
    assert outcome(events, Ending("finished")) is wanted


def test_a_parametrized_test_is_as_bad_as_its_worst_case() -> None:
    """Cases fold into the function that the manifest counts."""
    bad = passing(f"{NODE}[2]")
    bad[2] |= {"outcome": "failed", "error": {"type": "E", "message": "m", "frames": []}}
    for events in ([*passing(f"{NODE}[1]"), *bad], [*bad, *passing(f"{NODE}[1]")]):
        assert outcome(events, Ending("finished")) is Outcome.FAILED


def test_the_learners_own_frame_is_the_last_one_in_their_sources() -> None:
    """Frames of the standard library and of the test come after it."""
    error = {"type": "E", "message": "m", "frames": [
        ["/desk/tests/test_x.py", 3], ["/desk/src/p/m.py", 7], ["/usr/lib/json.py", 9]]}
    events = passing()
    events[2] |= {"outcome": "failed", "error": error}
    case = fold(events, [NODE], Ending("finished"), SOURCES).cases[NODE]
    assert case.error and (case.error.file, case.error.line) == ("src/p/m.py", 7)
    error["frames"] = [["/desk/tests/test_x.py", 3], ["/usr/lib/json.py", 9]]
    case = fold(events, [NODE], Ending("finished"), SOURCES).cases[NODE]
    assert case.error and (case.error.file, case.error.line) == ("tests/test_x.py", 3)


def test_a_death_at_import_is_everybodys_crash_and_a_hang_everybodys_timeout() -> None:
    """No test can run; the module is named."""
    events = [{"event": "importing", "module": "p.m"}]
    for how, wanted in (("died", Outcome.CRASHED), ("timeout", Outcome.TIMEOUT)):
        seen = fold(events, [NODE, OTHER], Ending(how), SOURCES)
        assert {case.outcome for case in seen.cases.values()} == {wanted}
        assert not seen.build.ok and seen.build.error and "p.m" in seen.build.error.message


def test_a_death_while_one_file_is_read_is_not_the_other_files() -> None:
    """Only that file's tests are lost; the others are run again."""
    events = [{"event": "collecting", "node": "tests/test_x.py"}]
    seen = fold(events, [NODE, "tests/test_y.py::test_c"], Ending("died"), SOURCES)
    assert list(seen.cases) == [NODE] and seen.goes_on
