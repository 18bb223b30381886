"""One submission, one grade: probes decide, public tests advise, and doubt gives no points."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.answers import Key
from course.batch import Plan, exit_code, grade_batch, graded, in_threads, names_of
from course.batch import Task as Waiting
from course.box import Box
from course.errors import Unavailable
from course.exam import Exam, answer_by_reference, set_exam
from course.feedback import run_public
from course.grades import Batch, Grade, Status, grade_from_json
from course.grading import grade
from course.labs import run_labs
from course.leash import Limits
from course.manifest import Course, load_course
from course.practice import Practice
from course.provision import find_sandbox
from course.sandbox import SandboxFailed, SandboxResult
from course.submission import Submission
from tests.conftest import TINY

MODULE = "src/tally/report.py"
RIGHT = (TINY / "solutions/02-report" / MODULE).read_bytes()
try:
    BOX: Box | None = Box(find_sandbox([TINY]))
    WHY_NOT = ""
except Unavailable as missing:
    BOX = None
    WHY_NOT = f"NO SANDBOX, SO NOTHING WAS GRADED: {missing.message}"

needs_sandbox = pytest.mark.skipif(BOX is None, reason=WHY_NOT)


@pytest.fixture(scope="module")
def exam() -> Exam:
    """The exam of chapter 02, answered by the reference."""
    course = load_course(TINY)
    box = BOX or Box()
    return answer_by_reference(set_exam(course, "02", ("one", "two"), 20.0, "en"), course, box)


def sent(source: bytes) -> Submission:
    return Submission("jane", {MODULE: source})


def of(exam: Exam, source: bytes, **how: Any) -> Grade:
    assert BOX
    return grade(BOX, exam, sent(source), "jane", **how)


@needs_sandbox
@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_reference_passes_with_full_points(exam: Exam, side_by_side: bool) -> None:
    """Whether feedback waits for the verdict or not; and the grade survives JSON."""
    got = of(exam, RIGHT, side_by_side=side_by_side)
    assert (got.status, got.points, got.max_points) == (Status.PASSED, 6.0, 6.0)
    assert not got.cause and got.first_red is None and got.duration_s > 0
    assert [(lab.public.good, lab.probes.good) for lab in got.labs] == [(2, 2), (1, 1), (1, 2)]
    again = grade_from_json(json.loads(json.dumps(got.to_json())))
    assert again == replace(got, duration_s=round(got.duration_s, 3))


@needs_sandbox
def test_green_in_public_and_red_in_probes_is_said(exam: Exam) -> None:
    """A table of the published answers gives nothing."""
    table = RIGHT + b"""
_top = Report.top
Report.top = lambda self, most: _top(self, most) if set(self.words) <= set("abc") else []
Report.lines = lambda self: []
"""
    got = of(exam, table)
    assert got.status is Status.FAILED and got.points == 0
    assert "green in public" not in got.cause  # 02.2 is red in public too
    got = of(exam, table.replace(b"Report.lines = lambda self: []", b""))
    assert got.status is Status.FAILED and "green in public" in got.cause
    assert all(lab.public.good == lab.public.total for lab in got.labs) and got.points < 6


@needs_sandbox
def test_the_first_red_is_the_learners_own(
    exam: Exam, desk: Practice, edit: Callable[[Practice, str, str], None], tiny: Course
) -> None:
    """Lab, test, error, line, advice and where to look, as `course test` shows them."""
    source = (desk.folder / MODULE).read_bytes()
    seen = run_labs(desk.folder, desk.manifest.chapters, desk.chapter.labs).first_red
    got = of(exam, source)
    assert seen and got.first_red and got.first_red.to_json() == seen.to_json()
    assert got.first_red.error.advice and got.first_red.look_at == "Report.top"


@needs_sandbox
def test_code_that_remembers_is_asked_again_alone(exam: Exam) -> None:
    """Right in a process of its own: right, although several probes were asked together."""
    forgetful = RIGHT + b"""
_calls = []
_plain = report_on
def report_on(text):
    _calls.append(text)
    if len(_calls) > 5:
        import os
        os._exit(0)
    return _plain(text)
"""
    got = of(exam, forgetful)
    assert (got.status, got.points) == (Status.PASSED, 6.0)


@needs_sandbox
def test_only_what_is_not_right_loses_its_points(exam: Exam) -> None:
    """A loop in one lab costs that lab and time, not the others."""
    got = of(exam, RIGHT + b"\ndef _lines(self):\n    while True: pass\nReport.lines = _lines\n")
    assert [lab.passed for lab in got.labs] == [True, False, False]
    assert (got.status, got.points) == (Status.TIMEOUT, 2.0)
    assert any("no answer in time" in title for lab in got.labs for title in lab.disagreed)


@needs_sandbox
def test_a_hang_at_import_costs_less_than_the_budget(exam: Exam) -> None:
    """It is not waited for twice."""
    got = of(exam, b"while True: pass")
    assert got.status is Status.TIMEOUT and "imported" in got.cause and got.duration_s < 10


@needs_sandbox
def test_a_chapter_without_probes_says_so(own_tiny: Path, tmp_path: Path) -> None:
    """verdict_by public, in the batch and in every result."""
    shutil.rmtree(own_tiny / "labs/02-report/hidden")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/report.py").write_bytes(RIGHT)
    (tmp_path / "in/blank.py").write_bytes(
        (TINY / "starters/02-report" / MODULE).read_bytes())
    assert BOX
    batch = batch_of(own_tiny, tmp_path, [tmp_path / "in/report.py", tmp_path / "in"])
    assert batch.verdict_by == "public"
    right, several = batch.grades
    assert right.status is Status.PASSED and "forgery" in right.notes[-1]
    assert several.status is Status.PASSED and all(lab.probes.total == 0 for lab in right.labs)


def batch_of(root: Path, place: Path, paths: Sequence[Path], **plan: Any) -> Batch:
    box = plan.pop("box", BOX)
    assert box
    return grade_batch(load_course(root), "02", paths, Plan(box, place / "out", 20.0, **plan),
                       in_threads(box, 2))


def planted(folder: Path) -> None:
    """Right work among files that would take over a test run of this folder."""
    (folder / "src/tally").mkdir(parents=True)
    (folder / MODULE).write_bytes(RIGHT)
    for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.py", "json.py",
                 "src/conftest.py", "src/tally/counter.py", "src/tally/__init__.py",
                 "tests/conftest.py", "tests/test_02_1_top.py", ".kit/plugin.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("raise SystemExit('planted')\n")
    for name in ("pytest.ini", "tox.ini", "setup.cfg", "pytest.toml", ".env"):
        (folder / name).write_text("[pytest]\naddopts = --collect-only\n")


def linked(folder: Path) -> None:
    (folder / "src/tally").mkdir(parents=True)
    (folder / MODULE).symlink_to(TINY / "solutions/02-report" / MODULE)


def linked_above(folder: Path) -> None:
    folder.mkdir()
    (folder / "src").symlink_to(TINY / "solutions/02-report/src")


def piped(folder: Path) -> None:
    (folder / "src/tally").mkdir(parents=True)
    os.mkfifo(folder / MODULE)


def climbing(folder: Path) -> None:
    with zipfile.ZipFile(folder, "w") as archive:
        archive.writestr(f"../../{MODULE}", RIGHT)


def packed(folder: Path) -> None:
    with zipfile.ZipFile(folder, "w") as archive:
        archive.writestr(f"jane/{MODULE}", RIGHT)


SENT: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "planted": (planted, "passed"), "linked": (linked, "rejected"),
    "linked above": (linked_above, "rejected"), "piped": (piped, "rejected"),
    "climbing.zip": (climbing, "rejected"), "packed.zip": (packed, "passed"),
    "empty": (Path.mkdir, "rejected"),
    "nothing.zip": (Path.touch, "rejected"),
    "gone": (lambda path: path.symlink_to("nowhere"), "rejected"),
}


@needs_sandbox
def test_whatever_is_sent_the_batch_ends_with_a_verdict_for_each(tmp_path: Path) -> None:
    """Links, pipes and archives that climb are rejected; what is planted beside is not taken."""
    (tmp_path / "in").mkdir()
    for name, (make, _) in SENT.items():
        make(tmp_path / "in" / name)
    batch = batch_of(TINY, tmp_path, [tmp_path / "in" / name for name in SENT])
    assert [str(got.status) for got in batch.grades] == [status for _, status in SENT.values()]
    assert all(got.cause for got in batch.grades if got.status is Status.REJECTED)
    assert exit_code(batch) == 1


@needs_sandbox
def test_a_silent_reference_grades_nobody(own_tiny: Path, tmp_path: Path) -> None:
    """Every result says ungradable and why; the exit code is 4."""
    probes = own_tiny / "labs/02-report/hidden/probes.py"
    probes.write_text(probes.read_text("utf-8") + '''

def probe_02_3_broken(salt):
    """A probe with a fault of its own."""
    raise ValueError
''')
    (tmp_path / "report.py").write_bytes(RIGHT)
    batch = batch_of(own_tiny, tmp_path, [tmp_path / "report.py"])
    got = batch.grades[0]
    assert got.status is Status.UNGRADABLE and "probe_02_3_broken" in got.cause
    assert got.points == 0 and exit_code(batch) == 4
    assert json.loads((tmp_path / "out/results.json").read_bytes())["submissions"]


def test_without_walls_every_result_is_marked(tmp_path: Path) -> None:
    """Where the teacher insists."""
    (tmp_path / "report.py").write_bytes(RIGHT)
    batch = batch_of(TINY, tmp_path, [tmp_path / "report.py"], box=Box())
    got = batch.grades[0]
    assert batch.sandbox == "none" and got.status is Status.PASSED
    assert any("without a sandbox" in note for note in got.notes)


@dataclass(frozen=True)
class Fake(Box):
    """A box whose runs end as a test wants."""

    outcome: Callable[[], SandboxResult] = lambda: SandboxResult(0, b"", b"", False, 0.1)

    def run(
        self, command: Sequence[str], *, files: Mapping[str, bytes], stdin: bytes = b"",
        limits: Limits,
    ) -> SandboxResult:
        return self.outcome()


def failing(problem: Exception) -> Callable[[], SandboxResult]:
    def fail() -> SandboxResult:
        raise problem
    return fail


@pytest.mark.parametrize("problem", [
    SandboxFailed("no room"), OSError(28, "disk full"), RecursionError(), KeyError("x"),
    MemoryError()])
def test_what_the_grader_cannot_do_is_never_a_pass(problem: Exception, exam: Exam) -> None:
    """Ungradable, with where it happened for the teacher alone."""
    done = graded(Fake(outcome=failing(problem)), exam, Waiting(0, "jane", "", sent(RIGHT)))
    assert done.grade.status is Status.UNGRADABLE and done.grade.points == 0
    assert "Traceback" in done.trace and "Traceback" not in json.dumps(done.grade.to_json())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 255), st.sampled_from(["", "time", "memory"]))
def test_a_run_that_says_anything_at_all_gives_no_points(
    said: bytes, status: int, stopped: Any
) -> None:
    """Fail closed: no random output is an answer."""
    told = unanswered()
    result = SandboxResult(status, b'{"event":"ready"}\n' + said, b"", False, 0.1, stopped)
    got = grade(Fake(outcome=lambda: result), told, sent(RIGHT), "jane")
    assert got.status in (Status.FAILED, Status.TIMEOUT) and got.points == 0


@cache
def unanswered() -> Exam:
    exam = set_exam(load_course(TINY), "02", ("one", "two"), 20.0, "en")
    assert exam.probes
    keys: list[Key] = [(p.name, salt) for p in exam.probes.probes for salt in (0, 1)]
    return replace(exam, reference=dict.fromkeys(keys, '"never said"'))


events = st.fixed_dictionaries(
    {"event": st.sampled_from(["start", "report", "end", "finish", "stopped", "import_error",
                               "imported", "importing", "collect_error", "collecting"])},
    optional={
        "node": st.sampled_from(["tests/test_02_2_lines.py::test_each_word_has_a_line",
                                 "tests/test_02_2_lines.py", "x", ""]) | st.integers(),
        "when": st.sampled_from(["setup", "call", "teardown", 1]),
        "outcome": st.sampled_from(["passed", "failed", "skipped", "odd", None]),
        "duration": st.floats() | st.just("x"), "offset": st.integers() | st.none(),
        "module": st.just("tally.report") | st.integers(), "names": st.just([]) | st.just("x"),
        "threads": st.just([]) | st.none(), "status": st.integers(),
        "error": st.none() | st.fixed_dictionaries({
            "type": st.text(max_size=5), "message": st.text(max_size=5),
            "frames": st.lists(st.tuples(st.text(max_size=5), st.none() | st.integers()),
                               max_size=2)}) | st.just({"type": 1}),
    })


@settings(max_examples=150, deadline=None)
@given(st.lists(events, max_size=10), st.binary(max_size=30))
def test_events_of_any_form_are_folded_to_the_declared_counts(
    lines: list[dict[str, Any]], more: bytes
) -> None:
    """The total is the manifest's, and a first red has an error."""
    data = b"\n".join([*(json.dumps(line).encode() for line in lines), more])
    result = SandboxResult(0, data, b"", False, 0.1)
    got = run_public(Fake(outcome=lambda: result), {}, load_course(TINY).chapter("02"), 0.6)
    assert [lab.total for lab in got.result.labs] == [2, 1, 1]
    assert got.result.first_red and got.result.first_red.error.type


def test_names_are_told_apart() -> None:
    """By the folders above, then by number."""
    paths = [Path("/a/x.zip"), Path("/b/x"), Path("/b/x.tar.gz"), Path("/c/y.py")]
    assert names_of(paths) == ["a/x", "b/x (2)", "b/x (3)", "y"]
