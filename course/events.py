"""Fold the events of a child process into case results: pure, values in and values out.

A case counts as passed only if the child said that it started, that each phase passed and that it
ended. Silence is never a pass: what is missing becomes crashed, timeout, error or not_run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.results import Build, CaseError, CaseResult, Outcome

Event = Mapping[str, Any]
PHASES = {"setup", "call", "teardown"}


@dataclass(frozen=True)
class Ending:
    """How a child ended: `finished`, `timeout` (we killed it), or `died` with its exit status."""

    how: str
    status: int = 0
    limit_s: float = 0.0

    @property
    def story(self) -> str:
        """What happened, in words."""
        if self.how == "timeout":
            return f"no end after {self.limit_s:g} s"
        if self.status < 0:
            return f"the process was killed by signal {-self.status}"
        if self.status == 97:
            return "the code closed a descriptor that the test run needs"
        return f"the process ended with exit status {self.status} (os._exit?)"


@dataclass(frozen=True)
class Folded:
    """What one child showed: cases by node id, the build, the offsets of each test's output."""

    cases: Mapping[str, CaseResult]
    build: Build
    output: Mapping[str, tuple[int, int | None]]
    reached: bool
    notes: tuple[str, ...]
    imported: Mapping[str, frozenset[str]]
    goes_on: bool
    inject_error: str | None = None


def fold(
    events: Sequence[Event], expected: Sequence[str], ending: Ending, sources: Sequence[Path]
) -> Folded:
    """Case results for every expected node id that this child says something about.

    `sources` are the folder and its source folders, innermost first: the learner's own frame is
    the last one inside the first of them that has any.
    """
    started = [event["node"] for event in events if event["event"] == "start"]
    ended = {event["node"] for event in events if event["event"] == "end"}
    cases: dict[str, CaseResult] = {}
    for node in started:
        case = _case(node, events, node in ended, ending, sources)
        base = node.partition("[")[0]
        if base not in cases or cases[base].outcome is Outcome.PASSED:
            cases[base] = case
    for node in expected:
        if node not in cases and (missing := _missing(node, events, ending, sources)):
            cases[node] = missing
    return Folded(
        cases=cases,
        build=_build(events, ending, sources),
        output=_offsets(events),
        reached=any(event["event"] == "reached" for event in events),
        notes=_notes(events, ending),
        imported={event["module"]: frozenset(event["names"]) for event in events
                  if event["event"] == "imported"},
        goes_on=bool(cases) and (ending.how != "finished" or _stopped(events) is not None),
        inject_error=next((f"{e['error']['type']}: {e['error']['message']}" for e in events
                           if e["event"] == "inject_error"), None),
    )


def _case(
    node: str, events: Sequence[Event], ended: bool, ending: Ending, sources: Sequence[Path]
) -> CaseResult:
    base = node.partition("[")[0]
    reports = [e for e in events if e["event"] == "report" and e["node"] == node]
    duration = sum(report["duration"] for report in reports)
    for report in reports:
        if report["outcome"] != "passed":
            error = case_error(report["error"], sources) if report["error"] else None
            return CaseResult(base, _outcome(report, error), duration, error, report["when"])
    if ended and {report["when"] for report in reports} == PHASES:
        return CaseResult(base, Outcome.PASSED, duration)
    if stopped := _stopped(events):
        return CaseResult(base, Outcome.FAILED, duration, case_error(stopped["error"], sources))
    outcome = Outcome.TIMEOUT if ending.how == "timeout" else Outcome.CRASHED
    kind = "Timeout" if outcome is Outcome.TIMEOUT else "Crashed"
    return CaseResult(base, outcome, duration, CaseError(kind, f"{node}: {ending.story}"))


def _stopped(events: Sequence[Event]) -> Event | None:
    """The event of a test that ended the whole session (pytest.exit, KeyboardInterrupt)."""
    return next((event for event in events if event["event"] == "stopped"), None)


def _outcome(report: Event, error: CaseError | None) -> Outcome:
    if report["outcome"] == "skipped":
        return Outcome.SKIPPED
    if error and error.type == "Failed" and error.message.startswith("Timeout "):
        return Outcome.TIMEOUT
    return Outcome.FAILED if report["when"] == "call" else Outcome.ERROR


def _missing(
    node: str, events: Sequence[Event], ending: Ending, sources: Sequence[Path]
) -> CaseResult | None:
    """The result of a test that never started, where this child can explain it."""
    file = node.partition("::")[0]
    for event in events:
        if event["event"] == "collect_error" and event["node"] == file:
            error = case_error(event["error"], sources)
            return CaseResult(node, Outcome.ERROR, 0.0, error, "setup")
    if any(event["event"] == "start" for event in events):
        return None  # the run got as far as tests: what did not start is run again or not_run
    if ending.how != "finished":
        where, culprit = _last_place(events)
        if culprit not in ("", file):
            return None
        outcome = Outcome.TIMEOUT if ending.how == "timeout" else Outcome.CRASHED
        kind = "Timeout" if outcome is Outcome.TIMEOUT else "Crashed"
        return CaseResult(node, outcome, 0.0, CaseError(kind, f"{where}: {ending.story}"), "setup")
    return None


def _last_place(events: Sequence[Event]) -> tuple[str, str]:
    """Where the child was, in words, and the test file that it was reading there, if any."""
    for event in reversed(events):
        if event["event"] == "importing":
            return f"while {event['module']} was imported", ""
        if event["event"] == "collecting" and event["node"].endswith(".py"):
            return f"while {event['node']} was collected", event["node"]
    return "before the first test", ""


def _build(events: Sequence[Event], ending: Ending, sources: Sequence[Path]) -> Build:
    for event in events:
        if event["event"] == "import_error":
            return Build(False, case_error(event["error"], sources))
    importing = [event["module"] for event in events if event["event"] == "importing"]
    imported = {event["module"] for event in events if event["event"] == "imported"}
    hanging = [module for module in importing if module not in imported]
    if hanging:
        message = f"while {hanging[0]} was imported: {ending.story}"
        return Build(False, CaseError("Timeout" if ending.how == "timeout" else "Crashed", message))
    return Build(True)


def case_error(error: Mapping[str, Any], sources: Sequence[Path]) -> CaseError:
    """The child's description of an exception, with the learner's own file and line."""
    frames = [(Path(file), line) for file, line in error["frames"]]
    file, line = None, None
    for source in sources:
        own = [(path, number) for path, number in frames if path.is_relative_to(source)]
        if own:
            file, line = own[-1][0].relative_to(sources[-1]).as_posix(), own[-1][1]
            break
    return CaseError(error["type"], error["message"], file, line, trace=error.get("trace", ""))


def _offsets(events: Sequence[Event]) -> dict[str, tuple[int, int | None]]:
    found: dict[str, tuple[int, int | None]] = {}
    for event in events:
        if event["event"] == "start":
            found[event["node"]] = (event["offset"], None)
        elif event["event"] == "end" and event["node"] in found:
            found[event["node"]] = (found[event["node"]][0], event["offset"])
    return found


def _notes(events: Sequence[Event], ending: Ending) -> tuple[str, ...]:
    notes = [f"a thread was left running: {name}"
             for event in events if event["event"] == "finish" for name in event["threads"]]
    if ending.how == "died":
        notes.append(ending.story)
    return tuple(notes)
