"""Grade a batch on a Dask cluster (the extra `dask`): submissions travel as bytes.

A task holds all that its worker needs, so a worker has no state that could be lost or stale: when
it is gone, Dask runs its tasks elsewhere. A worker with another kit, with another course at its
COURSE_ROOT or without a sandbox refuses, and the task goes to another one.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import socket
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from course.batch import Done, Task, Workers, graded, ungradable
from course.box import Box
from course.errors import Unavailable
from course.exam import Exam, course_digest, kit_digest
from course.grades import Grade
from course.manifest import load_course
from course.packages import require
from course.provision import find_sandbox

LOCAL = "local"
LOST = "the cluster has no worker left"
WINDOW = 3  # tasks under way for each thread of the cluster
PATIENCE_S = 60.0  # for a worker to appear
MOST_TRIES = 5  # of one task, when workers refuse it


@dataclass(frozen=True)
class Reply:
    """What a worker says: a grade, or why it does not give one."""

    grade: Grade | None
    trace: str = ""
    worker: str = ""
    refusal: str = ""


@dataclass
class _Cluster:
    """The tasks under way, and the workers that refused."""

    client: Any
    exam: Exam
    packed: bytes
    under_way: dict[Any, tuple[Task, int]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)

    def submit(self, task: Task, tries: int = 0) -> None:
        willing = [worker for worker in self.workers() if worker not in self.refusals]
        future = self.client.submit(
            grade_there, self.exam.kit, self.exam.course_digest, self.packed, pickle.dumps(task),
            pure=False, workers=willing if self.refusals else None,
            allow_other_workers=bool(self.refusals),
        )
        self.under_way[future] = task, tries

    def workers(self) -> dict[str, int]:
        """Addresses of the workers with their number of threads."""
        found: dict[str, int] = self.client.nthreads()
        return found

    def finished(self) -> Iterator[Done]:
        """Those that ended since; waits a moment for the first."""
        for future in self._ended():
            task, tries = self.under_way.pop(future)
            reply = _reply(future)
            if reply.grade:
                yield Done(task, reply.grade, reply.trace)
                continue
            self.refusals[reply.worker] = reply.refusal
            if tries + 1 < MOST_TRIES and set(self.workers()) - set(self.refusals):
                self.submit(task, tries + 1)
            else:
                yield ungradable(self.exam, task, Unavailable(reply.refusal))

    def give_up(self) -> Iterator[Done]:
        """Every task under way, ungraded."""
        for future, (task, _) in self.under_way.items():
            future.cancel()
            yield ungradable(self.exam, task, Unavailable(LOST))
        self.under_way.clear()

    def _ended(self) -> list[Any]:
        try:
            return list(_distributed().wait(list(self.under_way), timeout=1.0,
                                            return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []


def on_cluster(address: str, jobs: int) -> Workers:
    """Workers of the cluster at this address, or of one made here for the batch ("local")."""
    _distributed()  # say at once if it is not there

    def work(exam: Exam, tasks: Iterable[Task]) -> Iterator[Done]:
        todo = iter(tasks)
        with _client(address, jobs) as client:
            cluster = _Cluster(client, exam, zlib.compress(pickle.dumps(exam)))
            seen = time.monotonic()
            while time.monotonic() - seen < PATIENCE_S:
                room = max(1, WINDOW * sum(cluster.workers().values())) - len(cluster.under_way)
                for task in islice(todo, max(0, room)):
                    cluster.submit(task)
                if not cluster.under_way:
                    return
                yield from cluster.finished()
                seen = time.monotonic() if cluster.workers() else seen
            yield from cluster.give_up()
        for task in todo:
            yield ungradable(exam, task, Unavailable(LOST))

    return work


def grade_there(kit: str, digest: str, packed: bytes, task: bytes) -> Reply:
    """In the worker: the task's grade, or a refusal. Only the same kit reads what is pickled."""
    me = _my_address()
    if kit != kit_digest():
        return Reply(None, worker=me, refusal=f"worker {me} has another kit: {kit_digest()}")
    root = os.environ.get("COURSE_ROOT")
    exam, box = _exam(packed), _box()
    try:
        if root and course_digest(load_course(Path(root)), exam.chapter) != digest:
            return Reply(None, worker=me, refusal=f"worker {me} has another course at {root}")
    except Exception as problem:
        return Reply(None, worker=me, refusal=f"worker {me} has no sound course at {root}: "
                                              f"{problem}")
    try:
        require([exam.chapter])
    except Unavailable as problem:
        return Reply(None, worker=me, refusal=f"worker {me}: {problem.message}")
    if isinstance(box, str):
        return Reply(None, worker=me, refusal=f"worker {me}: {box}")
    done = graded(box, exam, pickle.loads(task))
    return Reply(done.grade, done.trace, me)


@lru_cache(maxsize=2)
def _exam(packed: bytes) -> Exam:
    exam: Exam = pickle.loads(zlib.decompress(packed))
    return exam


@cache
def _box() -> Box | str:
    """The sandbox of this worker, or why there is none."""
    try:
        return Box(find_sandbox([]))
    except Unavailable as missing:
        return missing.message


@contextmanager
def _client(address: str, jobs: int) -> Iterator[Any]:
    distributed = _distributed()
    with ExitStack() as held:
        try:
            if address == LOCAL:
                address = held.enter_context(distributed.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, processes=True, memory_limit=0,
                    dashboard_address=None, silence_logs=logging.CRITICAL))
            client = held.enter_context(distributed.Client(address, timeout=PATIENCE_S))
        except (OSError, TimeoutError, ValueError) as failure:
            raise Unavailable(f"no Dask cluster at {address}: {failure}") from failure
        yield client


def _distributed() -> Any:
    """The library, which only the extra brings."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise Unavailable("grading on Dask needs the extra `dask`",
                          "python -m pip install 'course-kit[dask]'") from None


def _my_address() -> str:
    try:
        return str(_distributed().get_worker().address)
    except ValueError:
        return socket.gethostname()


def _reply(future: Any) -> Reply:
    try:
        reply = future.result()
        return reply if isinstance(reply, Reply) else Reply(None, refusal="a worker said nonsense")
    except Exception as failure:  # a worker that cannot even load this module, or died too often
        return Reply(None, refusal=f"{type(failure).__name__}: {failure}")
