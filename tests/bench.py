"""`make bench`: speed as ratios of whole processes, run in pairs on the same machine.

Each row times a command and its yardstick in turn and gives the median of the pairwise ratios, so a
machine that is busy or slow moves both. Nothing here is asserted in tests.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.manifest import Course, load_course
from course.practice import make
from course.scratch import remove_tree, scratch_folder

REPOSITORY = Path(__file__).resolve().parent.parent
COURSE = [str(Path(sys.executable).with_name("course"))]
PAIRS = 11
SUBMISSIONS = 20  # of one batch


@dataclass(frozen=True)
class Row:
    """A command, what it is measured against, the folder they run in, and the most it may be.

    `parts`: how many things the command does, of which the yardstick does one.
    """

    name: str
    command: Sequence[str]
    against: Sequence[str]
    folder: Path
    most: float
    between: Callable[[], None] = lambda: None
    parts: int = 1
    pairs: int = PAIRS


def main() -> int:
    """Measure and print; 1 when a ratio is above what it may be."""
    course = load_course(REPOSITORY)
    with scratch_folder() as scratch:
        desk = make(course, course.chapter("12"), scratch / "desk", lang="en",
                    prove=lambda _: None).folder
        results = [measure(row) for row in [*rows(desk, scratch), grading(course, scratch)]]
    return int(not all(results))


def rows(desk: Path, scratch: Path) -> list[Row]:
    python = [sys.executable]
    click = [*python, "-c", "import click"]
    new = scratch / "new"
    test_file = next(desk.glob("tests/test_12_1_*.py")).relative_to(desk)
    return [
        Row("course test 12.1 / pytest on its file", [*COURSE, "test", "12.1"],
            [*python, "-m", "pytest", str(test_file)], desk, 1.25),
        Row("course --help / import click", [*COURSE, "--help"], click, desk, 2.0),
        Row("course practice 12 --no-check / import click",
            [*COURSE, "--root", str(REPOSITORY), "practice", "12", str(new), "--no-check"],
            click, scratch, 4.0, lambda: remove_tree(new)),
    ]


def grading(course: Course, scratch: Path) -> Row:
    """A batch of right submissions: sandbox, public tests as feedback, and hidden probes."""
    chapter = course.chapter("12")
    layer = course.root / "solutions" / chapter.name
    solved = make(course, chapter, scratch / "solved", lang="en", prove=lambda _: None).folder
    shutil.copytree(layer, solved, dirs_exist_ok=True)
    submissions = [scratch / "class" / f"s{number}" for number in range(SUBMISSIONS)]
    for folder in submissions:
        shutil.copytree(layer, folder)
    graded = scratch / "graded"
    command = [*COURSE, "--root", str(course.root), "grade", *map(str, submissions),
               "--chapter", "12", "--out", str(graded), "--jobs", "1"]
    return Row("course grade --jobs 1, one submission of chapter 12 / pytest -q on its tests",
               command, [sys.executable, "-m", "pytest", "-q", *(lab.file for lab in chapter.labs)],
               solved, 1.0, lambda: remove_tree(graded), SUBMISSIONS, 3)


def measure(row: Row) -> bool:
    """Print the row's median ratio and its range; whether it is within `most`."""
    ratios = []
    for pair in range(row.pairs + 1):
        ratio = _time(row.command, row.folder) / row.parts / _time(row.against, row.folder)
        row.between()
        ratios += [ratio] if pair else []  # the first pair warms the caches
    median = statistics.median(ratios)
    print(f"{median:6.2f}  (at most {row.most:g}; {min(ratios):.2f} to {max(ratios):.2f})  "  # noqa: T201
          f"{row.name}", flush=True)
    return median <= row.most


def _time(command: Sequence[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL, check=False,
                   env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST")})
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
