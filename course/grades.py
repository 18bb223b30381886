"""Frozen results of grading: what `course grade` decides and `course.grade/1` holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from course.results import CaseError, FirstRed, Json


class Status(StrEnum):
    """How a submission ended. Only `passed` means that every lab passed."""

    PASSED = "passed"
    FAILED = "failed"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    UNGRADABLE = "ungradable"


@dataclass(frozen=True)
class Count:
    """So many of so many."""

    good: int
    total: int


@dataclass(frozen=True)
class LabGrade:
    """One lab: points are given only where the verdict's side (probes or public) is complete."""

    id: str
    title: str
    passed: bool
    max_points: float
    public: Count
    probes: Count
    disagreed: tuple[str, ...] = ()  # titles of probes that did not agree; never their inputs

    @property
    def points(self) -> float:
        return self.max_points if self.passed else 0.0

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "title": self.title,
            "passed": self.passed,
            "points": self.points,
            "max_points": self.max_points,
            "public": {"passed": self.public.good, "total": self.public.total},
            "probes": {"agreed": self.probes.good, "total": self.probes.total},
            "disagreed": list(self.disagreed),
        }


@dataclass(frozen=True)
class Grade:
    """One submission's verdict. `first_red` is feedback, in a learner's words."""

    name: str
    status: Status
    labs: tuple[LabGrade, ...]
    cause: str = ""
    first_red: FirstRed | None = None
    notes: tuple[str, ...] = ()
    duration_s: float = 0.0

    @property
    def points(self) -> float:
        """Sum over labs; nothing unless the submission was really graded."""
        graded = self.status in (Status.PASSED, Status.FAILED, Status.TIMEOUT)
        return sum(lab.points for lab in self.labs) if graded else 0.0

    @property
    def max_points(self) -> float:
        return sum(lab.max_points for lab in self.labs)

    def to_json(self) -> Json:
        document: Json = {
            "name": self.name,
            "status": str(self.status),
            "points": self.points,
            "max_points": self.max_points,
            "labs": [lab.to_json() for lab in self.labs],
            "first_red": self.first_red.to_json() if self.first_red else None,
            "notes": list(self.notes),
            "duration_s": round(self.duration_s, 3),
        }
        if self.cause:
            document["cause"] = self.cause
        return document


@dataclass(frozen=True)
class Batch:
    """What all grades of one run have in common, and the grades in the order of submission."""

    chapter: str
    title: str
    course_digest: str
    sandbox: str
    verdict_by: str
    grades: Sequence[Grade]

    @property
    def passed(self) -> bool:
        return bool(self.grades) and all(g.status is Status.PASSED for g in self.grades)

    def head_json(self) -> Json:
        return {
            "schema": "course.grade/1",
            "chapter": self.chapter,
            "title": self.title,
            "course_digest": self.course_digest,
            "sandbox": self.sandbox,
            "verdict_by": self.verdict_by,
        }

    def to_json(self) -> Json:
        return {**self.head_json(), "submissions": [grade.to_json() for grade in self.grades]}


def grade_from_json(document: Json) -> Grade:
    """The grade that `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
    red = document["first_red"]
    return Grade(
        name=document["name"],
        status=Status(document["status"]),
        labs=tuple(
            LabGrade(
                lab["id"], lab["title"], lab["passed"], lab["max_points"],
                Count(lab["public"]["passed"], lab["public"]["total"]),
                Count(lab["probes"]["agreed"], lab["probes"]["total"]),
                tuple(lab["disagreed"]),
            )
            for lab in document["labs"]
        ),
        cause=document.get("cause", ""),
        first_red=None if red is None else FirstRed(
            red["lab"], red["test"],
            CaseError(red["error"]["type"], red["error"]["message"], red["error"].get("file"),
                      red["error"].get("line"), red["error"].get("advice")),
            red.get("observes", ""), red.get("look_at", "")),
        notes=tuple(document.get("notes", ())),
        duration_s=document["duration_s"],
    )
