"""results.json as Gradescope reads it (its "Autograder Specifications"). One submission."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from course.grades import Batch, Grade, Status
from course.outline import Chapter
from course.render.json import document
from course.render.plain import line, plain
from course.render.wording import Item, items, remarks, verdict
from course.results import Json

TEXT = {"output_format": "text", "test_output_format": "text", "test_name_format": "text"}
CRASHED = ("The autograder ended before it could grade this submission. That is not the "
           "submission's fault: please tell your instructor.")
UNGRADABLE = "This is not the submission's fault: please tell your instructor."


def gradescope(batch: Batch) -> Iterator[bytes]:
    """The results of the batch's one submission. ValueError if its points do not add up."""
    (grade,) = batch.grades
    tests = [_test(item) for item in items(batch, grade)]
    results: Json = {
        "score": grade.points,
        "execution_time": round(grade.duration_s),
        "output": plain("\n".join(_output(batch, grade))),
        **TEXT,
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {key: line(str(value)) for key, value in batch.head_json().items()},
    }
    _check_sums(tests, grade.points, grade.max_points)
    yield document(results)


def crashed(chapter: Chapter) -> bytes:
    """What stands in results.json until the real results replace it."""
    labs = [{"score": 0.0, "max_score": lab.points, "status": "failed", "number": lab.id,
             "name": line(f"{lab.id} {lab.title.en}"), "visibility": "visible"}
            for lab in chapter.labs]
    return document({"score": 0.0, "output": CRASHED, **TEXT, "visibility": "visible",
                     "stdout_visibility": "hidden", "tests": labs})


def _test(item: Item) -> Json:
    return {
        "score": item.points,
        "max_score": item.max_points,
        "status": "passed" if item.status is Status.PASSED else "failed",
        "name": line(item.name),
        "name_format": "text",
        "number": line(item.id),
        "output": plain(item.text),
        "output_format": "text",
        "visibility": "visible",
    }


def _output(batch: Batch, grade: Grade) -> list[str]:
    said = [verdict(grade)]
    if grade.status is Status.UNGRADABLE:
        said.append(UNGRADABLE)
    return [*said, *remarks(batch), *grade.notes]


def _check_sums(tests: Sequence[Json], points: float, max_points: float) -> None:
    """Gradescope refuses, or worse shows, points that do not add up."""
    sums = math.fsum(test["score"] for test in tests), math.fsum(t["max_score"] for t in tests)
    if not all(map(math.isclose, sums, (points, max_points))):
        raise ValueError(f"tests add up to {sums}, the grade is {(points, max_points)}")
