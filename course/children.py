"""Child processes for test runs: cold ones, and ones forked from an interpreter kept warm.

A child gets a scrubbed environment, no input, a session of its own and two pipes: its events, and
one that tells it when we are gone. Whatever happens to us, its whole process group is killed.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from course.scratch import scratch_folder

HERE = Path(__file__).resolve().parent
PLUGIN = HERE / "plugin.py"
OUTPUT_SHOWN = 4_000  # bytes of a command's output that are kept
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SYSTEMROOT",
        "LD_LIBRARY_PATH")
Spec = dict[str, Any]


class Process(Protocol):
    """What the runner needs of a child: its group, whether it is gone, its exit status."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class Children:
    """Starts children. With `warm` interpreters that have pytest loaded already, a child is a fork
    of one of them; without, each child is a new interpreter. Leave with `with` to end them."""

    def __init__(self, warm: bool = False) -> None:
        self._warm = warm and hasattr(socket, "send_fds")
        self._idle: queue.SimpleQueue[_Server] = queue.SimpleQueue()
        self._compiled: dict[str, str] = {}

    def know(self, folder: Path, compiled: Path) -> None:
        """Take the code of this folder's files, which do not change, from a table (course.compiled)
        instead of compiling them in every child."""
        self._compiled[str(folder.resolve())] = str(compiled)

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._idle.empty():
            self._idle.get().close()

    @contextmanager
    def start(self, spec: Spec, output: Path) -> Iterator[tuple[Process, int]]:
        """The running child and the descriptor of its events; nothing of it is left afterwards."""
        pipes = [*os.pipe(), *os.pipe()]
        events_in, events_out, life_in, _ = pipes
        process: Process | None = None
        spec = {**spec, "compiled": self._compiled.get(spec["folder"])}
        server = self._server()
        try:
            with output.open("ab") as stream:
                started = server.fork if server else _new_interpreter
                process = started(spec, events_out, life_in, stream)
            os.close(pipes.pop(1))
            yield process, events_in
        finally:
            for fd in pipes:
                os.close(fd)
            if process is not None:
                kill_group(process)
            if server is not None:
                self._idle.put(server) if server.usable(process) else server.close()

    def _server(self) -> _Server | None:
        if not self._warm:
            return None
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return _Server()


class _Server:
    """An interpreter with pytest loaded, which forks one child at a time."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", str(PLUGIN), "--serve", str(theirs.fileno())],
                cwd="/", env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), start_new_session=True,
            )

    def fork(self, spec: Spec, events: int, life: int, output: BinaryIO) -> Process:
        data = json.dumps(spec).encode() + b"\n"
        sent = socket.send_fds(self._control, [data], [events, life, output.fileno()])
        self._control.sendall(data[sent:])
        return _Fork(self._control, int(_line(self._control)))

    def usable(self, last: Process | None) -> bool:
        return last is not None and self._process.poll() is None

    def close(self) -> None:
        self._control.close()
        kill_group(self._process)


class _Fork:
    """A child of a server, which tells its exit status over the server's socket."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        self.pid = pid
        self._control = control
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            with suppress(BlockingIOError):
                self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                return self.wait()
        return self._status

    def wait(self) -> int:
        if self._status is None:
            self._status = int(_line(self._control))
        return self._status


def _line(control: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\n"):
        more = control.recv(1)
        if not more:
            return "-9"  # the server is gone, and its child with it
        data += more
    return data.decode()


def _new_interpreter(spec: Spec, events: int, life: int, output: BinaryIO) -> Process:
    return subprocess.Popen(
        [sys.executable, "-P", "-B", str(PLUGIN),
         json.dumps({**spec, "events": events, "life": life})],
        cwd=spec["folder"], env=environment(), stdin=subprocess.DEVNULL, stdout=output,
        stderr=output, pass_fds=(events, life), start_new_session=True,
    )


def kill_group(process: Process) -> None:
    """Kill the child's whole process group and reap the child."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment() -> dict[str, str]:
    """Only what a program needs: no PYTEST_*, PYTHON*, COVERAGE_* from outside."""
    kept = {name: value for name, value in os.environ.items()
            if name in KEPT or name.startswith("LC_")}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONSAFEPATH": "1"}


def run_command(line: str, folder: Path, limit_s: float = 120.0) -> tuple[int, str]:
    """Run a command line of a text in `folder` as a learner would; exit status and output.

    `course` and `python` in it are this kit and this interpreter.
    """
    with scratch_folder() as scratch:
        bin_folder = scratch / "bin"
        bin_folder.mkdir()
        for name, start in (("course", "-m course"), ("python", ""), ("python3", "")):
            script = f'#!/bin/sh\nexec "{sys.executable}" {start} "$@"\n'
            (bin_folder / name).write_text(script)
            (bin_folder / name).chmod(0o755)
        path = f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"
        with (scratch / "output.txt").open("w+b") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
                env={**environment(), "PATH": path, "PYTHONPATH": str(HERE.parent)},
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = 124
            finally:
                kill_group(process)
            output.seek(0)
            return status, output.read(OUTPUT_SHOWN).decode(errors="backslashreplace")
