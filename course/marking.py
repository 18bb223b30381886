"""`course grade` as a whole: what was asked for is checked, graded and written."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.batch import Plan, Workers, grade_batch, in_threads
from course.box import NONE, Box, open_box
from course.errors import UsageProblem
from course.grades import Batch, Grade
from course.manifest import Course
from course.render.formats import FORMATS, write_formats
from course.render.plain import line

WARNING = "warning: without a sandbox a submission can do to this machine whatever you can"


@dataclass(frozen=True)
class Wish:
    """How the teacher wants it."""

    out: Path
    formats: Sequence[str] = ()
    jobs: int = 1
    dask: str | None = None
    resume: bool = False
    sandbox: str = "bubblewrap"
    budget: float = 30.0
    lang: str = "en"


def mark(
    course: Course, chapter_id: str, paths: Sequence[Path], wish: Wish,
    progress: Callable[[str], None],
) -> Batch:
    """Grade the submissions and write results.json and the formats asked for."""
    _check(paths, wish)
    chapter = course.chapter(chapter_id)  # before anything is made
    box = open_box(wish.sandbox, _kept_secret(course, paths, wish.out))
    if box.name == NONE:
        progress(WARNING)

    def step(done: int, total: int, grade: Grade) -> None:
        progress(f"{done}/{total} {row(grade)}")

    plan = Plan(box, wish.out, wish.budget, wish.lang, wish.resume)
    batch = grade_batch(course, chapter.id, paths, plan, _workers(wish, box), step)
    if wish.formats:
        write_formats(batch, wish.formats, wish.out)
    return batch


def summary(batch: Batch, out: Path) -> Iterator[str]:
    """A line a submission, then how many ended how, and where it is written."""
    counts: Counter[str] = Counter()
    for grade in batch.grades:
        counts[str(grade.status)] += 1
        yield row(grade)
    counted = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    yield f"{len(batch.grades)} submissions: {counted} (verdict by {batch.verdict_by})"
    yield f"results: {out / 'results.json'}"


def row(grade: Grade) -> str:
    """One submission in one line."""
    points = f"{grade.points:g}/{grade.max_points:g}"
    cause = f"  {grade.cause}" if grade.cause else ""
    return line(f"{grade.status:<10} {points:>7}  {grade.name}{cause}")


def _check(paths: Sequence[Path], wish: Wish) -> None:
    missing = [path for path in paths if not os.path.lexists(path)]
    if missing:
        raise UsageProblem(f"there is no submission {line(str(missing[0]))}")
    unknown = [name for name in wish.formats if name not in FORMATS]
    if unknown:
        raise UsageProblem(f"no format {unknown[0]!r} (there are {', '.join(sorted(FORMATS))})")
    if wish.dask and wish.sandbox == NONE:
        raise UsageProblem("workers of a cluster grade in a sandbox or not at all",
                           "leave out --sandbox none")


def _kept_secret(course: Course, paths: Sequence[Path], out: Path) -> list[Path]:
    """Folders that no submission may see, wherever they lie."""
    return [course.root, out.resolve(), *{path.absolute().parent for path in paths}]


def _workers(wish: Wish, box: Box) -> Workers:
    if wish.dask is None:
        return in_threads(box, wish.jobs)
    from course.dask_batch import on_cluster  # the extra `dask`: only where it is used

    return on_cluster(wish.dask, wish.jobs)
