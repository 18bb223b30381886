"""results.json of Exercism's test runner interface, version 3. One submission; a task is a lab."""

from __future__ import annotations

from collections.abc import Iterator

from course.grades import Batch, Status
from course.render.json import document
from course.render.plain import line, plain
from course.render.wording import NO_VERDICT, Item, items, verdict
from course.results import Json

MOST_MESSAGE = 65_535


def exercism(batch: Batch) -> Iterator[bytes]:
    """The results of the batch's one submission; `error` only where nothing was judged."""
    (grade,) = batch.grades
    if grade.status in NO_VERDICT:
        yield document({"version": 3, "status": "error", "message": message(verdict(grade)),
                        "tests": []})
        return
    tests = [_test(item) for item in items(batch, grade)]
    for task, (test, _) in enumerate(zip(tests, grade.labs, strict=False), 1):
        test["task_id"] = task
    passed = all(test["status"] == "pass" for test in tests)
    yield document({"version": 3, "status": "pass" if passed else "fail", "tests": tests})


def message(text: str) -> str:
    """Visible text of a length that the website takes."""
    return plain(text)[:MOST_MESSAGE]


def _test(item: Item) -> Json:
    if item.status is Status.PASSED:
        return {"name": line(item.name), "status": "pass"}
    return {"name": line(item.name), "status": "fail", "message": message(item.text)}
