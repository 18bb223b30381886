"""docs/formats.md: each schema on the page holds for what the real commands write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from course.cli import cli
from course.errors import CourseError
from course.grades import Batch
from course.practice import Practice
from course.render.json import results
from tests.arbitrary import batches, ordinary, quickly, whole
from tests.conftest import REPOSITORY, TINY, type_course
from tests.strict_json import loads

PAGE = REPOSITORY / "docs" / "formats.md"
BLOCKS = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
SCHEMAS = {block["$id"]: block for block in map(json.loads, BLOCKS)}
Solve = Callable[[Practice], Practice]



def closed(schema: Any) -> Any:
    """The schema with every key forbidden that it does not name, so that none goes unnamed."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(part) for key, part in schema.items()}
    return inner | ({"additionalProperties": False} if schema.get("type") == "object" else {})


REGISTRY: Registry[Any] = Registry().with_resources(
    (name, Resource.from_contents(closed(schema), DRAFT202012))
    for name, schema in SCHEMAS.items())


def check(document: Any, name: str) -> Any:
    """The document, if it is one of course.<name>/1, or an error."""
    schema = {"$ref": f"urn:course:{name}:1"}
    Draft202012Validator(schema, registry=REGISTRY).validate(document)
    return document


def typed_json(name: str, status: int, *words: str | Path, cwd: Path) -> Any:
    """What `course WORDS --json` writes, once its exit code and its schema are as they should."""
    typed = type_course(*words, "--json", cwd=cwd)
    assert typed.status == status, typed.err
    return check(loads(typed.out.encode()), name)


def test_every_block_is_a_schema_and_every_schema_has_its_section() -> None:
    """A heading for each, and nothing in the page that no test takes."""
    text = PAGE.read_text("utf-8")
    assert text.count("```") == 2 * len(SCHEMAS)
    for name, schema in SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        word = name.split(":")[2]
        assert f"\n## {'Errors' if word == 'error' else f'course.{word}/1'}\n" in text


def test_a_schema_can_be_red() -> None:
    """A document of another kind, one with less and one with more do not fit."""
    good = loads(whole(results(ordinary())))
    check(good, "grade")
    for bad in ({**good, "schema": "course.run/1"}, {**good, "more": 1}, {**good, "title": 1},
                {key: good[key] for key in good if key != "sandbox"}):
        with pytest.raises(ValidationError):
            check(bad, "grade")


def test_list(desk: Practice) -> None:
    """From the course and from a practice folder."""
    typed_json("list", 0, "--root", TINY, "list", cwd=desk.folder)
    typed_json("list", 0, "list", cwd=desk.folder)


def test_practice(tmp_path: Path) -> None:
    """Proved and not proved."""
    made = typed_json("practice", 0, "--root", TINY, "practice", "02", "a", cwd=tmp_path)
    assert made["first_red"]["total"] == 2
    made = typed_json("practice", 0, "--root", TINY, "practice", "02", "b", "--no-check",
                      cwd=tmp_path)
    assert made["first_red"] is None


def test_build_and_run(desk: Practice, solve: Solve) -> None:
    """Red, green and broken."""
    typed_json("build", 0, "build", cwd=desk.folder)
    assert typed_json("run", 1, "test", cwd=desk.folder)["labs"][1]["blocked_by"] == ["02.1"]
    assert typed_json("run", 0, "test", "all", cwd=solve(desk).folder)["first_red"] is None
    (desk.folder / "src/tally/report.py").write_text("def broken(:\n", "utf-8")
    assert not typed_json("build", 1, "build", cwd=desk.folder)["build"]["ok"]
    assert not typed_json("run", 1, "test", cwd=desk.folder)["build"]["ok"]


def test_fault_and_record(desk: Practice, solve: Solve) -> None:
    """One lab, every lab, a lab that is not green; a record that does not hold."""
    typed_json("fault", 1, "fault", "02.1", cwd=desk.folder)
    typed_json("fault", 0, "fault", "02.1", cwd=solve(desk).folder)
    typed_json("faults", 0, "fault", cwd=desk.folder)
    assert typed_json("record", 1, "record", cwd=desk.folder)["lines"]


def test_verify(own_tiny: Path, tmp_path: Path) -> None:
    """A course that holds, and one with a defect."""
    assert typed_json("verify", 0, "--root", own_tiny, "verify", "01", cwd=tmp_path)["chapters"]
    starter = next((own_tiny / "starters/01-counter").rglob("*.py"))
    starter.write_text(starter.read_text("utf-8") + "\n# a stray word\n", "utf-8")
    assert typed_json("verify", 1, "--root", own_tiny, "verify", "01", cwd=tmp_path)["defects"]


@quickly
@given(batches())
def test_results_of_any_batch(batch: Batch) -> None:
    """Whatever a submission makes its grade say."""
    document = loads(whole(results(batch)))
    if document["verdict_by"] in ("probes", "public"):
        check(document, "grade")


@pytest.mark.skipif("grade" not in cli.commands, reason="NOT RUN: there is no `course grade` yet")
def test_grade(tmp_path: Path) -> None:
    """The command's document and its results.json; the same shape without a sandbox."""
    solution = TINY / "solutions/02-report"
    words = ("--root", TINY, "grade", solution, "--chapter", "02", "--out", "out")
    typed = type_course(*words, "--json", cwd=tmp_path)
    document = loads(typed.out.encode())
    if typed.status == 4:
        check(document, "grade" if "schema" in document else "error")
    else:
        assert typed.status == 0, typed.err
        check(document, "grade")
        check(loads((tmp_path / "out/results.json").read_bytes()), "grade")


@pytest.mark.parametrize(("status", "words"), [
    (2, ("test", "9.9")), (2, ("test", "--nothing")), (3, ("--root", "/", "list"))])
def test_errors(status: int, words: tuple[str, ...], desk: Practice) -> None:
    """Usage, a missing course."""
    typed_json("error", status, *words, cwd=desk.folder)


def test_the_kinds_of_errors_are_all_on_the_page() -> None:
    """One word for each class of errors."""
    kinds = SCHEMAS["urn:course:error:1"]["properties"]["error"]["properties"]["kind"]["enum"]
    pending = [CourseError]
    while pending:
        family = pending.pop()
        assert family.kind in kinds
        pending += family.__subclasses__()
