"""`course grade` as a CI job types it: killed, resumed, on a cluster, without a sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from course.cli import cli
from course.errors import Unavailable
from course.provision import find_sandbox
from tests.conftest import REPOSITORY, TINY, type_course

RIGHT = TINY / "solutions/02-report/src/tally/report.py"


def _sandbox_is_missing() -> str:
    try:
        find_sandbox()
    except Unavailable as missing:
        return f"NO SANDBOX HERE, NOTHING WAS GRADED: {missing.message}"
    return ""


MISSING = _sandbox_is_missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture
def submissions(tmp_path: Path) -> list[Path]:
    """Eight submissions: right ones, and every second one wrong."""
    made = []
    for number in range(8):
        path = tmp_path / "in" / f"s{number}" / "src/tally/report.py"
        path.parent.mkdir(parents=True)
        source = RIGHT.read_text("utf-8")
        path.write_text(source if number % 2 else source.replace("[:most]", "[most:]"), "utf-8")
        made.append(tmp_path / "in" / f"s{number}")
    return made


def verdicts(out: Path) -> list[tuple[Any, ...]]:
    document = json.loads((out / "results.json").read_bytes())
    return [(s["name"], s["status"], s["points"]) for s in document["submissions"]]


EXPECTED = [(f"s{n}", "passed" if n % 2 else "failed", 6.0 if n % 2 else 0.0) for n in range(8)]


def grade(submissions: list[Path], out: Path, *more: str) -> Any:
    return type_course("--root", TINY, "grade", *submissions, "--chapter", "02", "--out", out,
                       *more, cwd=out.parent)


def test_right_work_passes_and_wrong_work_does_not(
    submissions: list[Path], tmp_path: Path
) -> None:
    """Exit code 1, the verdict by probes, in the order of submission."""
    typed = grade(submissions, tmp_path / "out", "--json", "--jobs", "2")
    assert typed.status == 1 and typed.json["verdict_by"] == "probes"
    assert verdicts(tmp_path / "out") == EXPECTED


def test_a_killed_batch_goes_on_where_it_was(submissions: list[Path], tmp_path: Path) -> None:
    """kill -9 in mid-batch, then --resume: the same results, and finished ones are not redone."""
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "--root", str(TINY), "grade", *map(str, submissions),
         "--chapter", "02", "--out", str(out)], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    deadline = time.monotonic() + 60
    while len(done := list(out.glob("submissions/*.json"))) < 2 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.read_bytes() for path in done}
    assert grade(submissions, out, "--resume").status == 1
    assert verdicts(out) == EXPECTED
    assert {path: path.read_bytes() for path in kept} == kept  # durations and all


def test_a_local_cluster_gives_the_same_verdicts(submissions: list[Path], tmp_path: Path) -> None:
    """Submissions travel to Dask workers as bytes."""
    pytest.importorskip("distributed", reason="DASK IS NOT INSTALLED: pip install course-kit[dask]")
    typed = grade(submissions, tmp_path / "out", "--dask", "local")
    assert typed.status == 1, typed.err
    assert verdicts(tmp_path / "out") == EXPECTED


@pytest.mark.parametrize("page", ["security.md", "grading.md"])
def test_the_pages_name_what_is_there(page: str) -> None:
    """Tests by their paths, options by their names."""
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    for path in re.findall(r"tests/[\w/*.]*\w", text):
        assert list(REPOSITORY.glob(path)), path
    known = {option for command in cli.commands.values() for parameter in command.params
             for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known


def test_a_submission_that_cannot_be_read_costs_only_itself(
    submissions: list[Path], tmp_path: Path
) -> None:
    """Whoever may read everything grades it; nobody else's verdict depends on it."""
    submissions[1].chmod(0)
    try:
        typed = grade(submissions[:2], tmp_path / "out")
    finally:
        submissions[1].chmod(0o700)
    assert typed.status == 1, typed.err
    assert verdicts(tmp_path / "out")[0] == EXPECTED[0]
    assert verdicts(tmp_path / "out")[1] in (EXPECTED[1], ("s1", "rejected", 0.0))


def test_without_bubblewrap_nothing_is_graded(submissions: list[Path], tmp_path: Path) -> None:
    """Exit code 4 and what to install; never a silent fallback."""
    (tmp_path / "bin").mkdir()
    typed = type_course("--root", TINY, "grade", *submissions, "--chapter", "02", "--out",
                        tmp_path / "out", cwd=tmp_path, PATH=str(tmp_path / "bin"))
    assert typed.status == 4 and "bubblewrap" in typed.err
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_practice_folder_as_the_learner_left_it_is_a_submission(tmp_path: Path) -> None:
    """Tests, caches and .course/ in it are no obstacle."""
    assert type_course("--root", TINY, "practice", "02", "desk", cwd=tmp_path).status == 0
    shutil.copy(RIGHT, tmp_path / "desk/src/tally/report.py")
    (tmp_path / "desk/conftest.py").write_text("raise SystemExit")
    typed = grade([tmp_path / "desk"], tmp_path / "out")
    assert typed.status == 0 and verdicts(tmp_path / "out") == [("desk", "passed", 6.0)]
