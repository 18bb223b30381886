"""Gradescope: documents that fit a schema written from its documentation, with sums that hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from course.grades import Batch, Status
from course.manifest import Course
from course.render.gradescope import _check_sums, crashed, gradescope
from course.render.plain import line, plain
from course.render.wording import items
from tests.arbitrary import batches, everything_hostile, ordinary, quickly, whole
from tests.strict_json import loads

# https://gradescope-autograders.readthedocs.io/en/latest/specs/, every field that it names.
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
TEST = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "score": {"type": "number"}, "max_score": {"type": "number"},
        "status": {"enum": ["passed", "failed"]}, "name": {"type": "string"},
        "name_format": FORMAT, "number": {"type": "string"}, "output": {"type": "string"},
        "output_format": FORMAT, "tags": {"type": "array", "items": {"type": "string"}},
        "visibility": VISIBILITY, "extra_data": {"type": "object"},
    },
}
SCHEMA = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "score": {"type": "number"}, "execution_time": {"type": "integer"},
        "output": {"type": "string"}, "output_format": FORMAT, "test_output_format": FORMAT,
        "test_name_format": FORMAT, "visibility": VISIBILITY, "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"}, "tests": {"type": "array", "items": TEST},
        "leaderboard": {"type": "array"},
    },
    "anyOf": [{"required": ["score"]},
              {"properties": {"tests": {"minItems": 1, "items": {"required": ["score"]}}},
               "required": ["tests"]}],
}


def read(data: bytes) -> Any:
    document = loads(data)
    jsonschema.validate(document, SCHEMA)
    return document


@quickly
@given(batches(1, 1))
def test_the_document_fits_and_says_the_same(batch: Batch) -> None:
    """Fields, sums and words; everything is shown as text, never as HTML or Markdown."""
    (grade,), document = batch.grades, read(whole(gradescope(batch)))
    found = list(items(batch, grade))
    assert document["score"] == grade.points
    assert math.isclose(sum(test["score"] for test in document["tests"]), grade.points)
    assert math.isclose(sum(test["max_score"] for test in document["tests"]), grade.max_points)
    assert [test["output"] for test in document["tests"]] == [plain(item.text) for item in found]
    assert [test["name"] for test in document["tests"]] == [line(item.name) for item in found]
    shown = [document["output_format"], document["test_output_format"],
             *(test[key] for test in document["tests"] for key in ("output_format", "name_format"))]
    assert set(shown) == {"text"}


@quickly
@given(batches(1, 1))
def test_only_a_passed_submission_has_no_failed_test(batch: Batch) -> None:
    """A rejected, late or ungradable one shows at least one failed test."""
    (grade,), document = batch.grades, read(whole(gradescope(batch)))
    failed = [test for test in document["tests"] if test["status"] == "failed"]
    if grade.status is not Status.PASSED:
        assert failed
    assert all(test["score"] == 0 for test in failed)


def test_points_that_do_not_add_up_are_refused() -> None:
    """Nothing is written that shows other points than the grade has."""
    with pytest.raises(ValueError, match="add up"):
        _check_sums([{"score": 1.0, "max_score": 2.0}], 2.0, 2.0)


def test_it_holds_one_submission() -> None:
    """A batch of two is for formats.write_formats to split."""
    with pytest.raises(ValueError):
        whole(gradescope(ordinary()))


def test_every_hostile_text_in_every_field() -> None:
    """One submission each."""
    batch = everything_hostile()
    for grade in batch.grades:
        read(whole(gradescope(replace(batch, grades=[grade]))))


def test_the_crashed_result_is_valid_and_gives_nothing(tiny: Course) -> None:
    """It stands there until the real one replaces it."""
    document = read(crashed(tiny.chapter("02")))
    assert document["score"] == 0 and len(document["tests"]) == 3
    assert all(test["status"] == "failed" and test["score"] == 0 for test in document["tests"])
    assert "instructor" in document["output"]
