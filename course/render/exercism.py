"""results.json of Exercism's test runner interface, version 3. One submission; a task is a lab."""

from __future__ import annotations

from course.grades import Batch, Status
from course.render.json import document
from course.render.plain import line, plain
from course.render.wording import NO_VERDICT, Item, items, verdict
from course.results import Json

MOST_MESSAGE = 65_535
STATUS = {Status.PASSED: "pass", Status.FAILED: "fail", Status.TIMEOUT: "fail",
          Status.REJECTED: "error", Status.UNGRADABLE: "error"}


def exercism(batch: Batch) -> bytes:
    """The results of the batch's one submission; `error` only where nothing was judged."""
    (grade,) = batch.grades
    judged = grade.status not in NO_VERDICT
    results: Json = {"version": 3, "status": STATUS[grade.status]}
    if not judged:
        results["message"] = message(verdict(grade))
    tests = [_test(item) for item in items(batch, grade)]
    for task, (test, _) in enumerate(zip(tests, grade.labs, strict=False), 1):
        test["task_id"] = task
    return document(results | {"tests": tests if judged else []})


def message(text: str) -> str:
    """Visible text of a length that the website takes."""
    return plain(text)[:MOST_MESSAGE]


def _test(item: Item) -> Json:
    test: Json = {"name": line(item.name), "status": STATUS[item.status]}
    if item.status is not Status.PASSED:
        test["message"] = message(item.text)
    return test
