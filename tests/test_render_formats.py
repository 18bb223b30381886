"""Formats by name: which files they write, and that each is the same after a resume."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from course.grades import Batch, Status, grade_from_json
from course.render.formats import FORMATS, render, safe_name, write_formats
from course.render.wording import earned, items
from tests.arbitrary import anything, batches, ordinary, quickly
from tests.conftest import REPOSITORY
from tests.strict_json import loads

ONE = {"results": ["results.json"], "junit": ["junit.xml"], "csv": ["grades.csv"],
       "excel": ["grades.excel.csv"], "gradescope": ["gradescope.json"],
       "exercism": ["exercism.json"], "github": ["github.txt", "github-summary.md"],
       "markdown": ["grades.md"], "html": ["grades.html"]}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_writes_its_files(name: str, tmp_path: Path) -> None:
    """Of one submission each file is one."""
    batch = replace(ordinary(), grades=ordinary().grades[:1])
    write_formats(batch, [name], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(ONE[name])


def test_formats_for_one_submission_get_a_file_for_each(tmp_path: Path) -> None:
    """In a folder of their own, numbered, with names that are safe."""
    grades = [replace(ordinary().grades[0], name=name) for name in ("amy", "../../b\x1b/..", "")]
    written = write_formats(replace(ordinary(), grades=grades), ["gradescope"], tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "gradescope/0001-amy.json", "gradescope/0002-b.json",
        "gradescope/0003-submission.json"]


def test_files_are_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails, what stood there stands there still, and nothing else does."""
    write_formats(ordinary(), ["csv"], tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(self: Path, target: Path) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write_formats(replace(ordinary(), grades=[]), ["csv"], tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@quickly
@given(anything)
def test_safe_names_are_safe(text: str) -> None:
    """No separator, no dot, no dash in front, never empty, never long."""
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,59}", safe_name(text))


@quickly
@given(batches())
def test_results_are_strict_json_with_what_was_decided(batch: Batch) -> None:
    """Read by the strictest reader; only half characters are other than they were."""
    ((_, data),) = render(batch, FORMATS["results"])
    document = loads(data)
    assert document["schema"] == "course.grade/1"
    for seen, grade in zip(document["submissions"], batch.grades, strict=True):
        assert seen["name"] == grade.name.encode("utf-8", "backslashreplace").decode()
        assert (seen["points"], seen["status"]) == (grade.points, grade.status)


@quickly
@given(batches(1, 1))
def test_points_come_from_passed_labs_of_judged_submissions_only(batch: Batch) -> None:
    """What the reports show adds up to what the grade has; no status but these gives points."""
    (grade,) = batch.grades
    assert sum(earned(grade, lab) for lab in grade.labs) == grade.points
    assert all(item.points == 0 for item in items(batch, grade) if item.status is not Status.PASSED)
    if grade.status in (Status.REJECTED, Status.UNGRADABLE):
        assert grade.points == 0


@quickly
@given(batches(2, 1))
def test_a_resumed_batch_is_reported_alike(batch: Batch) -> None:
    """Nothing in a report depends on what is lost when grades are read from their JSON."""
    resumed = replace(batch, grades=[grade_from_json(grade.to_json()) for grade in batch.grades])
    for name in set(FORMATS) - {"github"}:  # its token is new each time
        assert list(render(batch, FORMATS[name])) == list(render(resumed, FORMATS[name]))


def test_names_of_formats_load_nothing_else() -> None:
    """A command line can offer the names without loading what makes them."""
    code = ("import sys, course.render.formats\n"
            "print([m for m in ('jinja2', 'csv', 'xml', 'msgspec', 'rich') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"
