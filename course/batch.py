"""Grade many submissions: side by side, each for itself, resumable, in constant memory."""

from __future__ import annotations

import os
import queue
import secrets
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from course.box import Box
from course.errors import INFRASTRUCTURE, RED, Unavailable
from course.exam import Exam, answer_by_reference, files_digest, policy, policy_digest, set_exam
from course.grades import Batch, Grade, Status
from course.grading import grade, without_verdict
from course.intake import SUFFIXES, Rejected, take
from course.ledger import Grades, Ledger, key_of, open_ledger, read_policy, write_results
from course.manifest import Course
from course.submission import Submission, shown

Progress = Callable[[int, int, Grade], None]  # done, of how many, the last grade
TRIES = 2  # for what the grader itself could not do


@dataclass(frozen=True)
class Task:
    """One submission that waits for its grade; it travels as bytes."""

    number: int
    name: str
    key: str
    submission: Submission


@dataclass(frozen=True)
class Done:
    """A graded task. `trace` says where the grader itself failed, if it did."""

    task: Task
    grade: Grade
    trace: str = ""


Workers = Callable[[Exam, Iterable[Task]], Iterator[Done]]  # in any order, taking few at a time


@dataclass(frozen=True)
class Plan:
    """How a batch is graded."""

    box: Box
    out: Path
    budget_s: float = 30.0
    lang: str = "en"
    resume: bool = False


def grade_batch(
    course: Course, chapter_id: str, paths: Sequence[Path], plan: Plan, workers: Workers,
    progress: Progress = lambda *_: None,
) -> Batch:
    """Every submission's grade, kept in plan.out one by one, and results.json at the end."""
    kept = read_policy(plan.out, resume=plan.resume)
    salts = kept["salts"] if kept else [secrets.token_hex(16), secrets.token_hex(16)]
    exam = set_exam(course, chapter_id, salts, plan.budget_s, plan.lang)
    ledger = open_ledger(plan.out, names_of(paths), policy(exam, plan.box.name), kept)
    done = 0

    def count(number: int, key: str, graded: Grade, trace: str = "") -> None:
        nonlocal done
        ledger.write(number, key, graded, trace)
        done += 1
        progress(done, len(paths), graded)

    try:
        exam = answer_by_reference(exam, course, plan.box)
    except Unavailable as failure:  # nobody can be graded, and everybody's result says so
        workers = _failing(failure)
    for one in workers(exam, _tasks(exam, paths, plan, ledger, count)):
        count(one.task.number, one.task.key, one.grade, one.trace)
    batch = Batch(exam.chapter.id, exam.title, exam.course_digest, plan.box.name,
                  exam.verdict_by, Grades(ledger))
    write_results(batch, plan.out)
    return batch


def exit_code(batch: Batch) -> int:
    """0 where all passed, 4 where one could not be graded, otherwise 1."""
    statuses = {graded.status for graded in batch.grades}
    if Status.UNGRADABLE in statuses:
        return INFRASTRUCTURE
    return 0 if statuses == {Status.PASSED} else RED


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for each submission, told apart by the folders above where they are alike."""
    names = [_stem(path) for path in paths]
    for again in (False, True):
        twice = {name for name, times in Counter(names).items() if times > 1}
        names = [
            name if name not in twice
            else f"{name} ({number})" if again
            else shown(f"{path.absolute().parent.name}/{name}")
            for number, (name, path) in enumerate(zip(names, paths, strict=True), 1)
        ]
    return names


def graded(box: Box, exam: Exam, task: Task, *, side_by_side: bool = False) -> Done:
    """The task's grade, whatever happens: what the grader cannot do is never a pass."""
    for left in reversed(range(TRIES)):
        try:
            return Done(task, grade(box, exam, task.submission, task.name,
                                    side_by_side=side_by_side))
        except Exception as failure:
            if left and isinstance(failure, Unavailable):
                continue
            return ungradable(exam, task, failure)
    raise AssertionError("the last try returns")


def ungradable(exam: Exam, task: Task, failure: Exception) -> Done:
    """The fault is the grader's, and the teacher can read where."""
    said = failure.message if isinstance(failure, Unavailable) else type(failure).__name__
    cause = f"the grader failed: {shown(said)}"
    return Done(task, without_verdict(exam, task.name, Status.UNGRADABLE, cause),
                "".join(traceback.format_exception(failure)))


def in_threads(box: Box, jobs: int) -> Workers:
    """Workers that grade so many at a time. They do not outlive an interrupt of the process."""
    def work(exam: Exam, tasks: Iterable[Task]) -> Iterator[Done]:
        waiting: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        finished: queue.SimpleQueue[Done] = queue.SimpleQueue()

        def grade_all() -> None:
            while task := waiting.get():
                finished.put(graded(box, exam, task, side_by_side=_is_room(jobs)))

        for _ in range(jobs):
            threading.Thread(target=grade_all, daemon=True).start()
        try:
            in_hand = 0
            for task in tasks:
                waiting.put(task)
                in_hand += 1
                while in_hand > jobs:  # one more is waiting: nobody is idle, nothing piles up
                    yield finished.get()
                    in_hand -= 1
            for _ in range(in_hand):
                yield finished.get()
        finally:
            for _ in range(jobs):
                waiting.put(None)

    return work


def _is_room(jobs: int) -> bool:
    """Whether feedback can be had beside the verdict: there are processors for it, or only one
    submission is graded at a time, and each of the two runs while the other waits for a clock."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return jobs == 1 or processors >= 2 * jobs


def _tasks(
    exam: Exam, paths: Sequence[Path], plan: Plan, ledger: Ledger,
    count: Callable[[int, str, Grade], None],
) -> Iterator[Task]:
    """What has to be graded. The refused, and those graded before, are counted at once."""
    under = policy_digest(exam, plan.box.name)
    for number, (path, name) in enumerate(zip(paths, ledger.names, strict=True)):
        try:
            submission = take(path, exam.chapter.submit)
        except Rejected as refusal:
            count(number, key_of(under, name, ""),
                  without_verdict(exam, name, Status.REJECTED, refusal.cause))
            continue
        except Exception as failure:
            task = Task(number, name, "", Submission(name, {}))
            count(number, "", ungradable(exam, task, failure).grade)
            continue
        key = key_of(under, name, files_digest(submission.files))
        if plan.resume and (before := ledger.read(number, key)):
            count(number, key, before)
        else:
            yield Task(number, name, key, submission)


def _failing(failure: Unavailable) -> Workers:
    return lambda exam, tasks: (ungradable(exam, task, failure) for task in tasks)


def _stem(path: Path) -> str:
    """The file's name without the suffixes of archives."""
    name = path.absolute().name
    while name.lower().endswith(SUFFIXES) and PurePosixPath(name).stem:
        name = PurePosixPath(name).stem
    return shown(name)
