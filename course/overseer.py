"""Watch a started bubblewrap from outside until the program ends or oversteps a limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import time
from dataclasses import dataclass
from subprocess import Popen
from typing import Literal

from course.leash import Leash, Limits

CHUNK = 64 * 1024
SAMPLE_S = 0.1  # how often memory is looked at
DRAIN_S = 2.0  # for the last output after the end
SETUP_S = 30.0  # for bubblewrap to get ready, on a machine that is very busy

Stop = Literal["", "time", "memory", "files", "output"]


class Capture:
    """The head and the tail of a stream that may be endless."""

    def __init__(self, cap: int) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._half = cap // 2

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half + CHUNK:
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self.total > 2 * self._half

    def text(self) -> bytes:
        """What was kept; where something was left out, a line of its own says how much."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        left_out = self.total - 2 * self._half
        note = f"\n[... {left_out} bytes left out ...]\n".encode()
        return bytes(self._head) + note + bytes(self._tail[len(self._tail) - self._half :])


@dataclass(frozen=True)
class Ending:
    """How a run ended. `exit_status` is None where bubblewrap did not report one."""

    exit_status: int | None
    stdout: Capture
    stderr: Capture
    stopped: Stop
    duration_s: float


class Overseer:
    """Reads what a started bubblewrap and the program inside it have to say."""

    def __init__(self, process: Popen[bytes], status: int, limits: Limits) -> None:
        assert process.stdout and process.stderr
        self._process = process
        self._status = status
        self._limits = limits
        self._report = b""
        self._stdout, self._stderr = Capture(limits.output), Capture(limits.output)
        self._streams = {
            process.stdout.fileno(): self._stdout,
            process.stderr.fileno(): self._stderr,
        }

    def oversee(self, gate: int) -> Ending:
        """Put the limits on, open the gate, watch to the end; leaves nothing alive."""
        stopped: Stop = ""
        duration = 0.0
        try:
            # bubblewrap may give up at any moment; what it said then is read at the end.
            with (
                contextlib.suppress(ProcessLookupError, BrokenPipeError),
                Leash(self._pid_of_init()) as leash,
            ):
                leash.limit(self._limits)
                started = time.monotonic()
                os.write(gate, b"1")
                stopped = self._watch(leash, started)
                duration = time.monotonic() - started
        finally:
            self._end()
        exit_status = self._reported("exit-code")
        return Ending(exit_status, self._stdout, self._stderr, stopped, duration)

    def _pid_of_init(self) -> int:
        """The first process inside, which waits at the gate."""
        deadline = time.monotonic() + SETUP_S
        while (pid := self._reported("child-pid")) is None:
            patience = deadline - time.monotonic()
            if not _ready(self._status, patience) or not self._read(self._status):
                raise ProcessLookupError("bubblewrap made no process")
        return pid

    def _reported(self, key: str) -> int | None:
        complete, _, _ = self._report.rpartition(b"\n")
        for line in complete.splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line).get(key)
                if isinstance(value, int):
                    return value
        return None

    def _watch(self, leash: Leash, started: float) -> Stop:
        deadline = started + self._limits.wall_s
        sample = started + SAMPLE_S
        with selectors.DefaultSelector() as selector:
            for source in (self._status, *self._streams):
                selector.register(source, selectors.EVENT_READ)
            while selector.get_map():
                now = time.monotonic()
                if now >= deadline:
                    return "" if self._reported("exit-code") is not None else "time"
                if sum(stream.total for stream in self._streams.values()) > self._limits.flood:
                    return "output"
                if now >= sample:
                    if overstepped := self._overstepped(leash):
                        return overstepped
                    sample = now + SAMPLE_S
                for key, _ in selector.select(max(0.0, min(deadline, sample) - now)):
                    if not self._read(key.fd):
                        selector.unregister(key.fd)
                        if key.fd == self._status:
                            deadline = min(deadline, time.monotonic() + DRAIN_S)
        return ""

    def _overstepped(self, leash: Leash) -> Stop:
        if leash.resident() > self._limits.total_memory:
            return "memory"
        return "files" if leash.scratch_files() > self._limits.scratch_files else ""

    def _read(self, source: int) -> bool:
        data = os.read(source, CHUNK)
        if source == self._status:
            self._report += data
        else:
            self._streams[source].add(data)
        return bool(data)

    def _end(self) -> None:
        """Kill bubblewrap, and what has not yet left its process group; read why it failed."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for source in self._streams:
            if _ready(source, 0):
                self._read(source)


def _ready(source: int, patience_s: float) -> bool:
    """Whether there is something to read, or an end. (select() knows only 1,024 descriptors.)"""
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    return bool(waiting.poll(max(0.0, patience_s) * 1000))
