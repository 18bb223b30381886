"""The zoo: one batch with every submission, each with the verdict that it must get."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from course.batch import Plan, grade_batch, in_threads
from course.box import Box
from course.errors import Unavailable
from course.grades import Batch, Grade
from course.manifest import load_course
from course.provision import find_sandbox
from tests.conftest import TINY
from tests.test_formats_page import check
from tests.zoo import REPORT, Animal, animals
from tests.zoo.parcels import PARCELS, Parcel

ALL = animals(TINY)
BUDGET_S = 8.0
try:
    BOX: Box | None = Box(find_sandbox([TINY]))
    WHY_NOT = ""
except Unavailable as missing:
    BOX = None
    WHY_NOT = f"NO SANDBOX, SO NO HOSTILE SUBMISSION WAS TRIED: {missing.message}"

pytestmark = pytest.mark.skipif(BOX is None, reason=WHY_NOT)


@dataclass(frozen=True)
class Zoo:
    """What one batch with all of them gave, and where it is written."""

    batch: Batch
    out: Path
    grades: dict[str, Grade]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """All of them in one batch, two at a time."""
    place = tmp_path_factory.mktemp("zoo")
    paths = []
    for number, animal in enumerate(ALL):
        folder = place / f"{number:03}" / "src" / "tally"
        folder.mkdir(parents=True)
        (folder / "report.py").write_bytes(animal.source)
        paths.append(place / f"{number:03}")
    right = (TINY / "solutions" / REPORT).read_bytes()
    for number, parcel in enumerate(PARCELS):
        (place / f"p{number:03}").mkdir()
        paths.append(parcel.pack(place / f"p{number:03}", right))
    assert BOX
    plan = Plan(BOX, place / "out", BUDGET_S)
    batch = grade_batch(load_course(TINY), "02", paths, plan, in_threads(BOX, 2))
    names = [*(animal.name for animal in ALL), *(parcel.name for parcel in PARCELS)]
    return Zoo(batch, plan.out, dict(zip(names, batch.grades, strict=True)))


@pytest.mark.parametrize("animal", ALL, ids=lambda animal: animal.name)
def test_each_gets_its_verdict(animal: Animal, zoo: Zoo) -> None:
    """Status and points, and a cause wherever it is not a pass."""
    grade = zoo.grades[animal.name]
    assert re.fullmatch(animal.status, grade.status) and grade.points == animal.points, grade
    assert bool(grade.cause) == (animal.status != "passed")
    assert re.search(animal.cause, grade.cause), grade.cause
    assert grade.duration_s < BUDGET_S + 2


@pytest.mark.parametrize("parcel", PARCELS, ids=lambda parcel: parcel.name)
def test_each_parcel_is_taken_or_rejected(parcel: Parcel, zoo: Zoo) -> None:
    """Full points where the right file is found in it, otherwise what the student has to do."""
    grade = zoo.grades[parcel.name]
    assert grade.status == parcel.status, grade
    assert grade.points == (6.0 if parcel.status == "passed" else 0.0)
    assert re.search(parcel.cause, grade.cause), grade.cause


def test_without_probes_too_right_work_passes_and_nothing_is_ungradable(
    own_tiny: Path, tmp_path: Path
) -> None:
    """Where public tests decide, what is odd loses nothing and what ends them is to blame."""
    shutil.rmtree(own_tiny / "labs/02-report/hidden")
    some = [animal for animal in ALL if animal.name.startswith("right") or "exit" in animal.name]
    paths = [tmp_path / str(number) for number in range(len(some))]
    for path, animal in zip(paths, some, strict=True):
        path.mkdir()
        (path / "report.py").write_bytes(animal.source)
    assert BOX
    plan = Plan(BOX, tmp_path / "out", BUDGET_S)
    batch = grade_batch(load_course(own_tiny), "02", paths, plan, in_threads(BOX, 2))
    assert batch.verdict_by == "public"
    for animal, grade in zip(some, batch.grades, strict=True):
        wanted = animal.status if animal.status == "passed" else "failed|timeout|passed"
        assert re.fullmatch(wanted, grade.status), (animal.name, grade)


def test_no_report_holds_a_salt_or_what_a_probe_is_called(zoo: Zoo) -> None:
    """Hidden results are coarse, whatever a submission writes into its messages."""
    text = json.dumps(zoo.batch.to_json())
    salts = json.loads((zoo.out / "salts.json").read_bytes())["salts"]
    assert len(set(salts)) == 2 and not any(salt in text for salt in salts)
    assert "probe_02" not in text and "Salted scenarios" not in text


def test_the_results_fit_their_schema(zoo: Zoo) -> None:
    """Nothing that one of them says makes the whole document another one."""
    check(json.loads((zoo.out / "results.json").read_bytes()), "grade")


@pytest.mark.usefixtures("zoo")
def test_nothing_is_left_behind() -> None:
    """No process of any submission outlives its verdict, and no file that it made."""
    parents = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents.append(int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]))
        except OSError:
            continue
    assert os.getpid() not in parents
    made = [f"{place}/{name}" for place in ("/tmp", "/dev/shm", "/desk", Path.home(), Path.cwd())
            for name in ("answers", "x0", "0", "evil.pth", "sitecustomize.py", "debug.log")]
    assert not [path for path in made if os.path.lexists(path)]
