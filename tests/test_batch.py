"""Many submissions: resumable, interruptible, in constant memory, on one machine or several."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from course.batch import Done, Plan, Task, Workers, grade_batch, in_threads
from course.box import Box
from course.errors import Unavailable, UsageProblem
from course.exam import Exam
from course.grades import Batch, Status
from course.grading import without_verdict
from course.manifest import load_course
from course.provision import find_sandbox
from course.render.json import document
from tests.conftest import REPOSITORY, TINY, type_course

RIGHT = (TINY / "solutions/02-report/src/tally/report.py").read_text("utf-8")
WRONG = RIGHT.replace("[:most]", "[most:]")
LOOP = RIGHT + "\ndef _lines(self):\n    while True: pass\nReport.lines = _lines\n"
try:
    find_sandbox()
    WHY_NOT = ""
except Unavailable as missing:
    WHY_NOT = f"NO SANDBOX, SO NO BATCH WAS GRADED: {missing.message}"

needs_sandbox = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def made(place: Path, sources: Iterable[str]) -> list[Path]:
    """Submissions of one file each."""
    paths = []
    for number, source in enumerate(sources):
        path = place / f"in/s{number}/report.py"
        path.parent.mkdir(parents=True)
        path.write_text(source, "utf-8")
        paths.append(path.parent)
    return paths


def run(paths: list[Path], out: Path, root: Path = TINY, **plan: Any) -> Batch:
    box = Box(find_sandbox([root]))
    return grade_batch(load_course(root), "02", paths, Plan(box, out, **plan), in_threads(box, 2))


def records(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "submissions").iterdir()}


@needs_sandbox
def test_results_are_those_of_the_records_in_order(tmp_path: Path) -> None:
    """results.json is the batch's document, written without holding all of it."""
    batch = run(made(tmp_path, [RIGHT, WRONG, "def"]), tmp_path / "out")
    assert (tmp_path / "out/results.json").read_bytes() == document(batch.to_json())
    assert [str(got.status) for got in batch.grades] == ["passed", "failed", "failed"]
    assert len(batch.grades) == 3 and batch.grades[-1].name == "s2"
    assert [got.name for got in batch.grades[1:]] == ["s1", "s2"]
    assert (tmp_path / "out/salts.json").stat().st_mode & 0o077 == 0


@needs_sandbox
def test_only_what_changed_is_graded_again(tmp_path: Path) -> None:
    """Other bytes, a record that is damaged, and what could not be graded."""
    paths, out = made(tmp_path, [RIGHT] * 5), tmp_path / "out"
    run(paths, out)
    before = records(out)
    (paths[1] / "report.py").write_text(WRONG)
    names = sorted(before)
    (out / "submissions" / names[2]).write_bytes(b"{")
    spoilt = json.loads(before[names[3]])
    spoilt["grade"]["status"] = "ungradable"
    (out / "submissions" / names[3]).write_text(json.dumps(spoilt))
    batch = run(paths, out, resume=True)
    assert [str(got.status) for got in batch.grades] == [
        "passed", "failed", "passed", "passed", "passed"]
    after = records(out)
    assert [after[name] == before[name] for name in names] == [True, False, False, False, True]


@needs_sandbox
@pytest.mark.parametrize("what", ["course", "budget", "kit", "salts"])
def test_an_earlier_batch_under_another_policy_is_not_resumed(
    what: str, own_tiny: Path, tmp_path: Path
) -> None:
    """Old verdicts cannot stand beside new ones; what is there stays."""
    paths, out = made(tmp_path, [RIGHT]), tmp_path / "out"
    run(paths, out, own_tiny)
    before = records(out)
    salts = json.loads((out / "salts.json").read_bytes())
    if what == "course":
        probes = own_tiny / "labs/02-report/hidden/probes.py"
        probes.write_text(probes.read_text("utf-8") + "\n# changed\n")
    elif what == "kit":
        (out / "salts.json").write_text(json.dumps(salts | {"kit": "0.0.1"}))
    elif what == "salts":
        (out / "salts.json").write_text(json.dumps(salts | {"salts": None}))
    with pytest.raises(UsageProblem):
        run(paths, out, own_tiny, resume=True, budget_s=30.0 + (what == "budget"))
    assert records(out) == before


@needs_sandbox
def test_a_folder_with_results_is_not_overwritten(tmp_path: Path) -> None:
    """Without --resume."""
    paths = made(tmp_path, [RIGHT])
    run(paths, tmp_path / "out")
    with pytest.raises(UsageProblem, match="another batch"):
        run(paths, tmp_path / "out")


@needs_sandbox
def test_salts_are_new_for_every_batch(tmp_path: Path) -> None:
    """And two in each."""
    paths = made(tmp_path, [RIGHT])
    drawn = []
    for name in ("one", "two"):
        run(paths, tmp_path / name)
        drawn += json.loads((tmp_path / name / "salts.json").read_bytes())["salts"]
    assert len(set(drawn)) == 4


@needs_sandbox
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_ends_at_once_and_keeps_what_is_done(number: int, tmp_path: Path) -> None:
    """130 (or the kill itself), no sandbox left behind, and --resume finishes."""
    paths, out = made(tmp_path, [RIGHT, WRONG, LOOP, LOOP, LOOP]), tmp_path / "out"
    command = [sys.executable, "-m", "course", "--root", str(TINY), "grade", *map(str, paths),
               "--chapter", "02", "--out", str(out), "--jobs", "2", "--budget"]
    process = subprocess.Popen([*command, "60"], cwd=tmp_path, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL,
                               env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    deadline = time.monotonic() + 60
    while len(list(out.glob("submissions/[0-9]*.json"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    kept = records(out)
    inside = descendants(process.pid)
    process.send_signal(number)
    started = time.monotonic()
    process.communicate(timeout=20)
    assert time.monotonic() - started < 10
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    assert not (out / "results.json").exists()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in inside) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in inside if Path(f"/proc/{pid}").exists()]
    (paths[2] / "report.py").write_text(RIGHT)
    for path in paths[3:]:
        (path / "report.py").write_text(WRONG)
    resumed = type_course(*command[3:], "60", "--resume", "--json", cwd=tmp_path)
    assert resumed.status == 1
    assert [one["status"] for one in resumed.json["submissions"]] == [
        "passed", "failed", "passed", "failed", "failed"]
    assert {name: data for name, data in records(out).items() if name in kept} == kept


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    except OSError:
        pass
    return found


@needs_sandbox
def test_memory_does_not_grow_with_the_number_of_submissions(tmp_path: Path) -> None:
    """Two thousand grades pass through, and hardly any is held."""
    (tmp_path / "report.py").write_text("x = 1\n" * 20_000)

    def quickly(exam: Exam, tasks: Iterable[Task]) -> Iterator[Done]:
        for task in tasks:
            yield Done(task, without_verdict(exam, task.name, Status.FAILED, "x" * 10_000))

    small, large = (peak(tmp_path / str(count), tmp_path / "report.py", count, quickly)
                    for count in (200, 2_000))
    assert large < small + 3_000_000  # less than 2 kB each: names and paths


def peak(out: Path, path: Path, count: int, workers: Workers) -> int:
    box = Box(find_sandbox([TINY]))
    tracemalloc.start()
    try:
        batch = grade_batch(load_course(TINY), "02", [path] * count, Plan(box, out), workers)
        assert len(batch.grades) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@needs_sandbox
def test_formats_are_written_beside_the_results(tmp_path: Path) -> None:
    """An unknown one is refused before anything is graded."""
    paths, out = made(tmp_path, [RIGHT]), tmp_path / "out"
    how: list[str | Path] = ["--root", TINY, "grade", *paths, "--chapter", "02", "--out", out]
    assert type_course(*how, "--format", "pdf", cwd=tmp_path).status == 2 and not out.exists()
    typed = type_course(*how, "--format", "csv", "--format", "junit", cwd=tmp_path)
    assert typed.status == 0 and "passed" in typed.out and "1/1" in typed.err
    assert {"grades.csv", "junit.xml", "results.json"} <= {path.name for path in out.iterdir()}


@needs_sandbox
def test_a_submission_that_is_not_there_is_a_slip_of_the_keyboard(tmp_path: Path) -> None:
    """Exit code 2, nothing made; a chapter that is not there as well."""
    for submission, chapter in (("nobody", "02"), (TINY, "09")):
        typed = type_course("--root", TINY, "grade", submission, "--chapter", chapter,
                            "--out", "out", "--json", cwd=tmp_path)
        assert typed.status == 2 and typed.json["error"]["message"]
        assert not (tmp_path / "out").exists()


distributed = pytest.mark.skipif(
    find_spec("distributed") is None,
    reason="NO DASK, SO NO CLUSTER WAS TRIED: pip install 'course-kit[dask]'")


@needs_sandbox
@distributed
def test_a_lost_worker_costs_nothing(tmp_path: Path) -> None:
    """Killed in mid-batch: what it had in hand is graded by another one."""
    paths, out = made(tmp_path, [RIGHT, WRONG] * 6), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "--root", str(TINY), "grade", *map(str, paths),
         "--chapter", "02", "--out", str(out), "--dask", "local", "--jobs", "2"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    deadline = time.monotonic() + 100
    while len(list(out.glob("submissions/[0-9]*.json"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    workers = [pid for pid in descendants(process.pid) if b"spawn_main" in command_of(pid)]
    os.kill(workers[0], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    document = json.loads((out / "results.json").read_bytes())
    assert [one["status"] for one in document["submissions"]] == ["passed", "failed"] * 6


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@needs_sandbox
@distributed
def test_workers_with_another_course_refuse(own_tiny: Path, tmp_path: Path) -> None:
    """A worker whose COURSE_ROOT is not the course of the batch gives no verdict."""
    (own_tiny / "labs/02-report/hidden/probes.py").write_text("# changed\n")
    typed = type_course("--root", TINY, "grade", *made(tmp_path, [RIGHT]), "--chapter", "02",
                        "--out", "out", "--dask", "local", "--json", cwd=tmp_path,
                        COURSE_ROOT=str(own_tiny))
    assert typed.status == 4, typed.err
    assert "another course" in typed.json["submissions"][0]["cause"]


@needs_sandbox
@distributed
def test_workers_with_another_kit_refuse() -> None:
    """Before they read anything that was pickled."""
    from course.dask_batch import grade_there

    reply = grade_there("0.0.1+other", "", b"not even a pickle", b"nor this")
    assert reply.grade is None and "another kit" in reply.refusal


@needs_sandbox
@distributed
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Exit code 4."""
    typed = type_course("--root", TINY, "grade", *made(tmp_path, [RIGHT]), "--chapter", "02",
                        "--out", "out", "--dask", "nonsense", cwd=tmp_path)
    assert typed.status == 4 and "nonsense" in typed.err
