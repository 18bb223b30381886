"""Limits on a running sandbox, set, watched and enforced from outside it."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from select import POLLIN, poll
from typing import Self

from course.bubblewrap import FOLDER

MIB = 1024 * 1024
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE_S = 10.0
PLACES = ("/tmp", "/dev/shm", FOLDER)
MOST_PROCESSES = 10_000  # a walk through processes that come and go must end


@dataclass(frozen=True)
class Limits:
    """What one run may use. Sizes are in bytes, times in seconds."""

    wall_s: float = 10.0
    memory: int = 1024 * MIB  # address space of each process
    total_memory: int = 2048 * MIB  # resident in all processes together, sampled
    processes: int = 64  # and threads
    open_files: int = 128  # of each process
    file_size: int = 16 * MIB
    scratch: int = 64 * MIB  # each of /tmp and /dev/shm
    scratch_files: int = 20_000  # in each, sampled
    output: int = MIB  # kept of stdout and of stderr
    flood: int = 64 * MIB  # written to both before the run is stopped
    writable: bool = False  # its folder takes new files, as many bytes as a scratch place
    cpu: int | None = None  # the only processor it may use, so that a neighbour keeps its own

    def resource_limits(self) -> dict[int, tuple[int, int]]:
        """Soft and hard limits of every process; SIGXCPU a second before the kernel kills."""
        cpu = math.ceil(self.wall_s) + 1
        same = {
            resource.RLIMIT_AS: self.memory,
            resource.RLIMIT_NPROC: self.processes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_FSIZE: self.file_size,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
        }
        return {kind: (n, n) for kind, n in same.items()} | {resource.RLIMIT_CPU: (cpu, cpu + 1)}


class Leash:
    """Holds pid 1 of a sandbox, waiting at the gate. When it is let go, all inside it die."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._handle)

    def limit(self, limits: Limits) -> None:
        """Set the resource limits, and make the kernel take the sandbox first when memory ends."""
        for kind, pair in limits.resource_limits().items():
            most = resource.prlimit(self.pid, kind)[1]
            unlimited = most == resource.RLIM_INFINITY
            soft, hard = pair if unlimited else (min(pair[0], most), min(pair[1], most))
            resource.prlimit(self.pid, kind, (soft, hard))
        if limits.cpu is not None:
            os.sched_setaffinity(self.pid, {limits.cpu})
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.pid}/oom_score_adj").write_text("1000")

    def resident(self) -> int:
        """Bytes that all processes of the sandbox hold in memory now; 0 where /proc is silent."""
        return sum(map(_resident, islice(self._processes(), MOST_PROCESSES)))

    def scratch_files(self) -> int:
        """Files and folders in the fullest of the places that can be written."""
        with contextlib.suppress(OSError):
            return max(_files(f"/proc/{self.pid}/root{place}") for place in PLACES)
        return 0

    def kill(self) -> None:
        """Kill pid 1, with which the kernel kills every process inside, and wait until all are."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        ended = poll()
        ended.register(self._handle, POLLIN)
        ended.poll(PATIENCE_S * 1000)
        # The orphan is ours to reap where we are pid 1 of a container.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)

    def _processes(self) -> Iterator[int]:
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            with contextlib.suppress(OSError):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    waiting += map(int, Path(thread, "children").read_text().split())


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def _files(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_files - found.f_ffree
