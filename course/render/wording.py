"""What every report says about a grade, in the same words. Nothing here is escaped yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from course.grades import Batch, Count, Grade, LabGrade, Status
from course.render.plain import shortened
from course.results import FirstRed

NO_VERDICT = (Status.REJECTED, Status.UNGRADABLE)
MOST_MESSAGE = 5_000
MOST_LINES = 40
BY_PUBLIC_TESTS = ("Verdicts come from the public tests, which run in one process with the "
                   "submission: they are not proof against forgery.")
NO_SANDBOX = ("Graded without a sandbox: what a submission did to this machine or to the verdicts "
              "is not known.")


@dataclass(frozen=True)
class Item:
    """One line of a report: a lab, or the submission itself where no lab says why it is red."""

    id: str
    title: str
    status: Status
    points: float
    max_points: float
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.id} {self.title}" if self.title else self.id

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def items(batch: Batch, grade: Grade) -> Iterator[Item]:
    """Every lab in order. A submission that is not passed has at least one item that is not."""
    told = False
    for lab in grade.labs:
        status = lab_status(grade, lab)
        lines = [*_reasons(batch, grade, lab), *_first_red(grade, lab.id)]
        if status is not Status.PASSED and not told:
            lines[:0] = [verdict(grade)] if grade.cause and status not in NO_VERDICT else []
            told = True
        yield Item(lab.id, lab.title, status, earned(grade, lab), lab.max_points, tuple(lines))
    if grade.status is not Status.PASSED and not told:
        elsewhere = grade.first_red and all(lab.id != grade.first_red.lab for lab in grade.labs)
        yield Item("submission", "", grade.status, 0.0, 0.0,
                   (verdict(grade), *(_first_red(grade) if elsewhere else ())))


def red_items(batch: Batch, grade: Grade) -> list[Item]:
    """What there is to look at: red labs, or the one reason why no lab was judged."""
    if grade.status in NO_VERDICT:
        return [Item("submission", "", grade.status, 0.0, 0.0, (verdict(grade),))]
    return [item for item in items(batch, grade) if item.status is not Status.PASSED]


def lab_status(grade: Grade, lab: LabGrade) -> Status:
    """Passed, failed, or what ended the submission before this lab could be judged."""
    if grade.status in NO_VERDICT:
        return grade.status
    if lab.passed:
        return Status.PASSED
    return Status.TIMEOUT if grade.status is Status.TIMEOUT else Status.FAILED


def earned(grade: Grade, lab: LabGrade) -> float:
    """The points of one lab. Over all labs they add up to `grade.points`."""
    return lab.points if lab_status(grade, lab) is Status.PASSED else 0.0


def verdict(grade: Grade) -> str:
    """The status and its cause."""
    return f"{grade.status}: {grade.cause}" if grade.cause else str(grade.status)


def score(grade: Grade) -> str:
    """`4 of 10 points`."""
    return f"{number(grade.points)} of {number(grade.max_points)} points"


def number(value: float) -> str:
    """The number without digits that say nothing: 2, 0.5, 0.3333."""
    return str(int(value)) if float(value).is_integer() else str(round(value, 4))


def count(counted: Count) -> str:
    """`3 of 4`, or a dash where there was nothing to count."""
    return f"{counted.good} of {counted.total}" if counted.total else "–"


def remarks(batch: Batch) -> list[str]:
    """What a reader must know about all verdicts of this batch."""
    said = []
    if batch.verdict_by != "probes":
        said.append(BY_PUBLIC_TESTS)
    if batch.sandbox == "none":
        said.append(NO_SANDBOX)
    return said


def _reasons(batch: Batch, grade: Grade, lab: LabGrade) -> Iterator[str]:
    if grade.status in NO_VERDICT:
        yield verdict(grade)
        return
    by_probes = batch.verdict_by == "probes"
    if by_probes:
        yield f"hidden probes that agree: {count(lab.probes)}"
        yield from (f"does not agree: {title}" for title in lab.disagreed)
    public = f"public tests that pass: {count(lab.public)}"
    yield f"{public} (feedback, no points)" if by_probes else public
    if by_probes and not lab.passed and 0 < lab.public.total == lab.public.good:
        yield "every public test passes, but the hidden probes do not agree"


def _first_red(grade: Grade, lab_id: str | None = None) -> Iterator[str]:
    """The first red as its owner would see it, if it is of this lab. Feedback, not the verdict."""
    red = grade.first_red
    if red is None or lab_id not in (None, red.lab):
        return
    yield f"first red (feedback): {red.test}"
    yield from error_lines(red)
    if red.observes:
        yield f"observes: {red.observes}"
    if red.look_at:
        yield f"look at: {red.look_at}"


def error_lines(red: FirstRed) -> Iterator[str]:
    """The error's own words, where it stands, and advice."""
    error = red.error
    said = f"{error.type}: {shortened(error.message, MOST_MESSAGE)}".split("\n")
    yield from said[:MOST_LINES]
    if len(said) > MOST_LINES:
        yield f"… [{len(said) - MOST_LINES:,} more lines]"
    if error.file:
        yield f"at {error.file}:{error.line}" if error.line else f"at {error.file}"
    if error.advice:
        yield f"advice: {error.advice}"
