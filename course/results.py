"""Frozen results of runs, labs, cases and faults. What counts as green is decided here, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Outcome(StrEnum):
    """How one public test ended. Only `passed` ever counts."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    NOT_RUN = "not_run"


@dataclass(frozen=True)
class CaseError:
    """Why a case is red. `file` is relative to the folder (POSIX) where it lies inside it."""

    type: str
    message: str
    file: str | None = None
    line: int | None = None
    advice: str | None = None
    trace: str = ""

    @property
    def first_line(self) -> str:
        """The first line of the message, which is what a declared first red is compared with."""
        return self.message.split("\n", 1)[0]

    def to_json(self) -> Json:
        document: Json = {
            "type": self.type,
            "message": self.message,
            "file": self.file,
            "line": self.line,
        }
        if self.advice:
            document["advice"] = self.advice
        return document


@dataclass(frozen=True)
class CaseResult:
    """One public test. `id` is its node id; `phase` is where it ended: setup, call or teardown."""

    id: str
    outcome: Outcome
    duration_s: float = 0.0
    error: CaseError | None = None
    phase: str = "call"
    output: str = ""

    @property
    def name(self) -> str:
        """The part of the node id after the file."""
        return self.id.partition("::")[2]

    def to_json(self) -> Json:
        document: Json = {
            "id": self.id,
            "outcome": str(self.outcome),
            "duration_s": round(self.duration_s, 4),
        }
        if self.error:
            document["error"] = self.error.to_json()
        return document


@dataclass(frozen=True)
class LabResult:
    """The cases of one lab in declared order. `total` is the manifest's count, always."""

    id: str
    title: str
    total: int
    cases: tuple[CaseResult, ...]
    blocked_by: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        return sum(case.outcome is Outcome.PASSED for case in self.cases)

    @property
    def green(self) -> bool:
        return self.total > 0 and self.passed == len(self.cases) == self.total

    @property
    def status(self) -> str:
        """`green`, `blocked` (red because a lab it needs is red) or `red`."""
        if self.green:
            return "green"
        return "blocked" if self.blocked_by else "red"

    @property
    def first_red(self) -> CaseResult | None:
        return next((case for case in self.cases if case.outcome is not Outcome.PASSED), None)

    def to_json(self) -> Json:
        document: Json = {
            "id": self.id,
            "title": self.title,
            "passed": self.passed,
            "total": self.total,
            "status": self.status,
            "tests": [case.to_json() for case in self.cases],
        }
        if self.blocked_by:
            document["blocked_by"] = list(self.blocked_by)
        return document


@dataclass(frozen=True)
class Build:
    """Whether the code compiles, imports and keeps its public signatures."""

    ok: bool
    error: CaseError | None = None

    def to_json(self) -> Json:
        return {"ok": self.ok} | ({"error": self.error.to_json()} if self.error else {})


@dataclass(frozen=True)
class FirstRed:
    """The first case that is not green, in declared order, and where to look."""

    lab: str
    test: str
    error: CaseError
    observes: str = ""
    look_at: str = ""
    output: str = ""

    def to_json(self) -> Json:
        document: Json = {"lab": self.lab, "test": self.test, "error": self.error.to_json()}
        if self.observes:
            document["observes"] = self.observes
        if self.look_at:
            document["look_at"] = self.look_at
        return document


@dataclass(frozen=True)
class RunResult:
    """One run of some labs: what `course test` shows and `course.run/1` holds."""

    chapter: str
    build: Build
    labs: tuple[LabResult, ...]
    first_red: FirstRed | None = None
    notes: tuple[str, ...] = ()
    log: str = ""

    @property
    def passed(self) -> int:
        return sum(lab.passed for lab in self.labs)

    @property
    def total(self) -> int:
        return sum(lab.total for lab in self.labs)

    @property
    def green(self) -> bool:
        return self.build.ok and bool(self.labs) and all(lab.green for lab in self.labs)

    def lab(self, lab_id: str) -> LabResult:
        return next(lab for lab in self.labs if lab.id == lab_id)

    def to_json(self) -> Json:
        return {
            "schema": "course.run/1",
            "chapter": self.chapter,
            "build": self.build.to_json(),
            "passed": self.passed,
            "total": self.total,
            "first_red": self.first_red.to_json() if self.first_red else None,
            "labs": [lab.to_json() for lab in self.labs],
            "notes": list(self.notes),
        }


class Verdict(StrEnum):
    """What a fault experiment showed."""

    KILLED = "killed"
    WRONG_KILLER = "wrong_killer"
    SURVIVED = "survived"
    NOT_REACHED = "not_reached"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class FaultResult:
    """One fault: the verdict, the tests that failed in their call phase, and what they said."""

    id: str
    lab: str
    breaks: str
    verdict: Verdict
    killers: tuple[str, ...] = ()
    message: str = ""
    source: str = ""

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "lab": self.lab,
            "breaks": self.breaks,
            "verdict": str(self.verdict),
            "killers": list(self.killers),
            "message": self.message,
        }


@dataclass(frozen=True)
class FaultReport:
    """All experiments on one lab, between two runs of the unmodified code."""

    chapter: str
    lab: str
    before: LabResult
    after: LabResult | None = None
    faults: tuple[FaultResult, ...] = ()

    @property
    def holds(self) -> bool:
        """True when the code was green before and after and every fault was killed."""
        green = self.before.green and self.after is not None and self.after.green
        killed = all(fault.verdict is Verdict.KILLED for fault in self.faults)
        return green and bool(self.faults) and killed

    def to_json(self) -> Json:
        return {
            "schema": "course.fault/1",
            "chapter": self.chapter,
            "lab": self.lab,
            "before": self.before.to_json(),
            "after": self.after.to_json() if self.after else None,
            "faults": [fault.to_json() for fault in self.faults],
        }


def judge(
    chapter: str,
    build: Build,
    labs: tuple[LabResult, ...],
    *,
    needs: Mapping[str, tuple[str, ...]],
    notes: tuple[str, ...] = (),
    log: str = "",
) -> RunResult:
    """The labs with `blocked_by` filled in: a red lab is blocked by each red lab it needs."""
    red = {lab.id for lab in labs if not lab.green}
    judged = tuple(
        replace(lab, blocked_by=tuple(need for need in needs.get(lab.id, ()) if need in red))
        if lab.id in red
        else lab
        for lab in labs
    )
    return RunResult(chapter, build, judged, notes=notes, log=log)
