"""A table for spreadsheets: one row a lab, safe to open, one record a line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from course.grades import Batch, Grade, LabGrade
from course.render.plain import line, shortened
from course.render.wording import earned, lab_status, number

COLUMNS = (
    "student", "lab", "title", "passed", "expected", "agreed", "probes", "points",
    "max_points", "status", "first_red", "first_red_error", "cause", "verdict_by", "sandbox",
)
MOST_ERROR = 500
# What makes a cell a formula, in any width, and where a cell may begin: at its start, and after a
# semicolon for programs that take the semicolon for the separator, as Excel does in half of Europe.
FORMULA = re.compile(r"(^|;)([\s\"']*)(?=[=+\-@＝＋－＠])")


def table(batch: Batch) -> Iterator[bytes]:
    """The table as UTF-8 with a header, a submission a part; every row has all columns."""
    yield _lines([COLUMNS])
    for grade in batch.grades:
        yield _lines([cell(value) for value in row] for row in _rows(batch, grade))


def table_for_excel(batch: Batch) -> Iterator[bytes]:
    """The same, preceded by the mark without which Excel does not take a file for UTF-8."""
    yield b"\xef\xbb\xbf"
    yield from table(batch)


def cell(text: str) -> str:
    """One line of visible text that no spreadsheet program takes for a formula."""
    return FORMULA.sub(r"\1\2'", line(text))


def _lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _rows(batch: Batch, grade: Grade) -> Iterator[list[str]]:
    common = [grade.cause, batch.verdict_by, batch.sandbox]
    for lab in grade.labs:
        yield [grade.name, lab.id, lab.title, *_counts(lab), number(earned(grade, lab)),
               number(lab.max_points), str(lab_status(grade, lab)), *_red(grade, lab.id), *common]
    if not grade.labs:
        yield [grade.name, "", "", *"000000", str(grade.status), *_red(grade, None), *common]


def _counts(lab: LabGrade) -> list[str]:
    numbers = (lab.public.good, lab.public.total, lab.probes.good, lab.probes.total)
    return [str(value) for value in numbers]


def _red(grade: Grade, lab_id: str | None) -> list[str]:
    red = grade.first_red
    if red is None or lab_id not in (None, red.lab):
        return ["", ""]
    return [red.test, shortened(f"{red.error.type}: {red.error.first_line}", MOST_ERROR)]
