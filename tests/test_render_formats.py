"""Formats by name: which files they write, and that each is the same after a resume."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from course.grades import Batch, Status, grade_from_json
from course.ledger import RECORDS, Grades, Ledger
from course.render.formats import FORMATS, render, safe_name, write_formats
from course.render.github import MOST_SUMMARY
from course.render.wording import earned, items
from tests.arbitrary import anything, batches, ordinary, quickly, whole
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
    write_formats(replace(ordinary(), grades=grades), ["gradescope"], tmp_path)
    written = sorted(tmp_path.glob("*/*"))
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
    ((_, parts),) = render(batch, FORMATS["results"])
    document = loads(whole(parts))
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
        assert files(batch, name) == files(resumed, name)


def files(batch: Batch, name: str) -> dict[str, bytes]:
    return {path: whole(parts) for path, parts in render(batch, FORMATS[name])}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """Two thousand grades in a folder of records, as a batch that has ended leaves them."""
    amy, ben = ordinary().grades
    assert ben.first_red
    error = replace(ben.first_red.error, message="a line of a long message\n" * 40)
    ben = replace(ben, first_red=replace(ben.first_red, error=error), cause="not as asked" * 20)
    ledger = Ledger(tmp_path_factory.mktemp("out"), tuple(f"s{n}" for n in range(2_000)))
    (ledger.folder / RECORDS).mkdir()
    for number, name in enumerate(ledger.names):
        ledger.write(number, "", replace((amy, ben)[number % 2], name=name))
    return replace(ordinary(), grades=Grades(ledger))


@pytest.mark.parametrize("name", FORMATS)
def test_memory_does_not_grow_with_the_number_of_grades(
    name: str, kept: Batch, tmp_path: Path
) -> None:
    """Ten times as many are written within the same memory, one part after the other."""
    ledger = ledger_of(kept)
    few = replace(kept, grades=Grades(Ledger(ledger.folder, ledger.names[:200])))
    peak(few, name, tmp_path / "warm")  # modules and templates are loaded once
    most = peak(few, name, tmp_path / "few") + 100_000  # for 1,800 more grades of 2 kB
    most += MOST_SUMMARY if name == "github" else 0  # its summary is held, up to what fits
    # Twice at most: a table of the interpreter's own may happen to grow in one of them.
    assert peak(kept, name, tmp_path / "all") < most or peak(kept, name, tmp_path / "all") < most


def ledger_of(batch: Batch) -> Ledger:
    assert isinstance(batch.grades, Grades)
    return batch.grades.ledger


def peak(batch: Batch, name: str, out: Path) -> int:
    tracemalloc.start()
    try:
        write_formats(batch, [name], out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_names_of_formats_load_nothing_else() -> None:
    """A command line can offer the names without loading what makes them."""
    code = ("import sys, course.render.formats\n"
            "print([m for m in ('jinja2', 'csv', 'xml', 'msgspec', 'rich') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"
