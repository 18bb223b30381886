"""Prove a course: every start red for its one reason, every solution green, every fault killed.

The jobs of all chapters run side by side, each in folders of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from course.children import Children
from course.errors import CourseError
from course.manifest import Course
from course.outline import Chapter
from course.proofs import Job, Problems, Stage, idle_tests, proofs_of, set_up
from course.results import Json
from course.scratch import scratch_folder
from course.strays import find_strays


@dataclass(frozen=True)
class Defect:
    """What does not hold, in which chapter (or the whole course), and what to type next."""

    chapter: str
    proof: str
    message: str

    def to_json(self) -> Json:
        return {"chapter": self.chapter, "proof": self.proof, "message": self.message}


@dataclass(frozen=True)
class Report:
    """What was proved and what was not."""

    proved: tuple[str, ...]
    defects: tuple[Defect, ...]
    jobs: int

    @property
    def holds(self) -> bool:
        return not self.defects

    @property
    def lines(self) -> list[str]:
        wrong = [f"defect in {defect.chapter} ({defect.proof}): {defect.message}"
                 for defect in self.defects]
        end = f"the course holds: {self.jobs} proofs" if self.holds else (
            f"{len(self.defects)} defects in {self.jobs} proofs")
        return [*self.proved, *wrong, end]

    def to_json(self) -> Json:
        return {"schema": "course.verify/1", "holds": self.holds, "proofs": self.jobs,
                "chapters": list(self.proved), "defects": [d.to_json() for d in self.defects]}


def prove(
    course: Course, chapter_id: str | None, *, repeat: int, jobs: int,
    progress: Callable[[str], None],
) -> Report:
    """Every proof about the course, or about one chapter."""
    names = [course.name_of(chapter_id)] if chapter_id else list(course.names)
    defects: list[Defect] = []
    chapters: list[Chapter] = []
    for name in names:
        try:
            chapters.append(course.chapter(name))
        except CourseError as problem:
            defects.append(Defect(name, "manifest", problem.message))
    defects += [Defect("course", "files", text) for text in find_strays(course, chapters)]
    with scratch_folder() as scratch, Children(warm=True) as children:
        work: list[Job] = []
        stages: list[Stage] = []
        for chapter in chapters:
            try:
                stages.append(set_up(course, chapter, scratch / chapter.name, children))
            except CourseError as problem:
                defects.append(Defect(chapter.name, "checkpoint", problem.message))
        run_later: dict[str, set[str]] = {}  # a track's lines that a later chapter has too
        for stage in reversed(stages):  # late chapters wait for clocks, which early ones can fill
            lines = run_later.setdefault(stage.chapter.track, set())
            work += proofs_of(stage, repeat, frozenset(lines))
            lines |= stage.commands.keys()
        work.sort(key=lambda job: job.proof != "commands in the texts")  # the longest jobs first
        defects += _run(work, jobs, progress)
    defects += [Defect(stage.chapter.name, "kill matrix", text)
                for stage in stages for text in idle_tests(stage)]
    bad = {defect.chapter for defect in defects}
    proved = tuple(_summary(stage.chapter) for stage in stages if stage.chapter.name not in bad)
    return Report(proved, tuple(defects), len(work))


def _run(work: Sequence[Job], jobs: int, progress: Callable[[str], None]) -> list[Defect]:
    """Run the jobs side by side; an interrupt waits only for those that are running."""
    defects: list[Defect] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        futures: dict[Future[Problems], Job] = {pool.submit(_safely, job): job for job in work}
        for number, future in enumerate(as_completed(futures), 1):
            job = futures[future]
            defects += [Defect(job.chapter, job.proof, text) for text in future.result()]
            progress(f"{number}/{len(work)} {job.chapter}: {job.proof}")
    finally:
        pool.shutdown(cancel_futures=True)
    return sorted(defects, key=lambda d: (d.chapter, d.proof, d.message))


def _safely(job: Job) -> Problems:
    try:
        return job.run()
    except CourseError as problem:
        return [problem.message]


def _summary(chapter: Chapter) -> str:
    return (f"{chapter.name}: {len(chapter.labs)} labs, {chapter.count} tests, "
            f"{len(chapter.faults)} faults")
