"""Exercism: documents that fit a schema written from its test runner interface, version 3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
from hypothesis import given

from course.grades import Batch, Grade, Status
from course.render.exercism import exercism
from course.render.plain import line, plain
from course.render.wording import items
from tests.arbitrary import batches, everything_hostile, ordinary, quickly, whole
from tests.strict_json import loads

# https://exercism.org/docs/building/tooling/test-runners/interface
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["version", "status", "tests"],
    "properties": {
        "version": {"const": 3}, "status": {"enum": ["pass", "fail", "error"]},
        "message": {"type": "string", "maxLength": 65535},
        "tests": {"type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["name", "status"],
            "properties": {
                "name": {"type": "string"}, "status": {"enum": ["pass", "fail", "error"]},
                "message": {"type": "string", "maxLength": 65535},
                "output": {"type": "string", "maxLength": 500},
                "test_code": {"type": "string"}, "task_id": {"type": "integer", "minimum": 1},
            },
            "if": {"properties": {"status": {"enum": ["fail", "error"]}}},
            "then": {"required": ["message"]},
        }},
    },
    "if": {"properties": {"status": {"const": "error"}}},
    "then": {"required": ["message"], "properties": {"tests": {"maxItems": 0}}},
    "else": {"properties": {"message": False}},
}


def read(grade: Grade, batch: Batch) -> Any:
    document = loads(whole(exercism(replace(batch, grades=[grade]))))
    jsonschema.validate(document, SCHEMA)
    return document


@quickly
@given(batches(1, 1))
def test_the_document_fits_and_says_the_same(batch: Batch) -> None:
    """Tests in the order of the labs; `error` only where nothing was judged."""
    (grade,) = batch.grades
    document, found = read(grade, batch), list(items(batch, grade))
    if document["status"] == "error":
        assert grade.status in (Status.REJECTED, Status.UNGRADABLE)
        return
    assert [test["name"] for test in document["tests"]] == [line(item.name) for item in found]
    for test, item in zip(document["tests"], found, strict=True):
        assert test.get("message", plain(item.text)) == plain(item.text)
    assert [test["task_id"] for test in document["tests"] if "task_id" in test] == [
        *range(1, len(grade.labs) + 1)]


@quickly
@given(batches(1, 1))
def test_pass_means_that_the_submission_passed(batch: Batch) -> None:
    """And a submission that did not pass shows a test that did not."""
    (grade,) = batch.grades
    document = read(grade, batch)
    every_lab = all(lab.passed for lab in grade.labs)
    assert (document["status"] == "pass") == (grade.status is Status.PASSED and every_lab)
    if document["status"] == "fail":
        assert any(test["status"] == "fail" for test in document["tests"])


def test_every_hostile_text_in_every_field() -> None:
    """One submission each."""
    batch = everything_hostile()
    assert {read(grade, batch)["status"] for grade in batch.grades} == {"fail"}


def test_what_a_class_looks_like() -> None:
    """Amy passes, Ben has one red lab."""
    amy, ben = (read(grade, ordinary()) for grade in ordinary().grades)
    assert amy["status"] == "pass" and ben["status"] == "fail"
    assert [test["status"] for test in ben["tests"]] == ["pass", "fail"]
