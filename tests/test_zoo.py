"""The zoo: one batch with every submission, each with the verdict that it must get."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from course.batch import Plan, grade_batch, in_threads
from course.box import Box
from course.errors import Unavailable
from course.grades import Batch, Grade
from course.manifest import load_course
from course.provision import find_sandbox
from tests.conftest import TINY
from tests.zoo import Animal, animals

ALL = animals(TINY)
BUDGET_S = 8.0
try:
    BOX: Box | None = Box(find_sandbox([TINY]))
    WHY_NOT = ""
except Unavailable as missing:
    BOX = None
    WHY_NOT = f"NO SANDBOX, SO NO HOSTILE SUBMISSION WAS TRIED: {missing.message}"

pytestmark = pytest.mark.skipif(BOX is None, reason=WHY_NOT)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """All of them in one batch, two at a time."""
    place = tmp_path_factory.mktemp("zoo")
    paths = []
    for number, animal in enumerate(ALL):
        folder = place / f"{number:03}" / "src" / "tally"
        folder.mkdir(parents=True)
        (folder / "report.py").write_bytes(animal.source)
        paths.append(place / f"{number:03}")
    assert BOX
    plan = Plan(BOX, place / "out", BUDGET_S)
    return grade_batch(load_course(TINY), "02", paths, plan, in_threads(BOX, 2))


@pytest.fixture(scope="module")
def grades(graded: Batch) -> dict[str, Grade]:
    return {animal.name: grade for animal, grade in zip(ALL, graded.grades, strict=True)}


@pytest.mark.parametrize("animal", ALL, ids=lambda animal: animal.name)
def test_each_gets_its_verdict(animal: Animal, grades: dict[str, Grade]) -> None:
    """Status and points, and a cause wherever it is not a pass."""
    grade = grades[animal.name]
    assert re.fullmatch(animal.status, grade.status) and grade.points == animal.points, grade
    assert bool(grade.cause) == (animal.status != "passed")
    assert re.search(animal.cause, grade.cause), grade.cause
    assert grade.duration_s < BUDGET_S + 2


def test_no_report_holds_a_salt_or_what_a_probe_is_called(graded: Batch, tmp_path: Path) -> None:
    """Hidden results are coarse, whatever a submission writes into its messages."""
    text = json.dumps(graded.to_json())
    salts = json.loads((_out(graded) / "salts.json").read_bytes())["salts"]
    assert len(set(salts)) == 2 and not any(salt in text for salt in salts)
    assert "probe_02" not in text


def test_nothing_is_left_running(graded: Batch) -> None:
    """No process of any submission outlives its verdict."""
    parents = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents.append(int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]))
        except OSError:
            continue
    assert os.getpid() not in parents


def _out(batch: Batch) -> Path:
    folder: Path = batch.grades._ledger.folder  # type: ignore[attr-defined]
    return folder
