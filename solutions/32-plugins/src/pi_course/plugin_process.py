"""A child process that is spoken to one line at a time and can be ended for certain."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.values import JSONValue, canonical_json

MAX_LINE_DEPTH = 64
"""Brackets inside brackets in a line of a worker: an input schema may use them up."""


class WorkerProcess:
    """A process with its own session, an empty environment and a scratch folder; see start.

    stderr: the first bytes it printed. exit_code: its own one, None while it runs and for a
    process that had to be ended.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        scratch: Path,
        channel: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        log: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        line_bytes: int,
        stderr_bytes: int,
    ) -> None:
        self.pid = process.pid
        self.scratch = scratch
        self.stderr = b""
        self.exit_code: int | None = None
        self.ended = False
        self.line_bytes = line_bytes
        self._process = process
        self._reader, self._writer = channel
        self._log = log[1]
        self._logging = asyncio.ensure_future(self._keep(log[0], stderr_bytes))

    @classmethod
    async def start(
        cls, command: Callable[[Path], Sequence[str]], *, line_bytes: int, stderr_bytes: int
    ) -> WorkerProcess:
        """Return a process that runs `command(scratch)`; its stdin and stdout are one socket.

        It leads a session and a process group of its own, its environment is empty, it starts in
        the new folder `scratch`. Of stderr the first `stderr_bytes` are kept and the rest is
        read and dropped. CourseError WORKER_FAILED when it cannot be started.
        """
        ours, theirs = socket.socketpair()
        our_log, their_log = socket.socketpair()
        with theirs, their_log:
            channel = await asyncio.open_connection(sock=ours, limit=line_bytes)
            log = await asyncio.open_connection(sock=our_log)
            scratch = Path(tempfile.mkdtemp(prefix="plugin-"))
            nothing: dict[str, str] = {}
            try:
                process = subprocess.Popen(
                    command(scratch),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=their_log.fileno(),
                    cwd=scratch,
                    env=nothing,
                    start_new_session=True,
                )
            except BaseException as error:
                channel[1].close()
                log[1].close()
                shutil.rmtree(scratch, ignore_errors=True)
                if isinstance(error, OSError):
                    raise CourseError("WORKER_FAILED", "the worker could not be started") from None
                raise
        return cls(process, scratch, channel, log, line_bytes, stderr_bytes)

    async def exchange(self, message: JSONValue, seconds: float) -> JSONValue:
        """Return the next line that the process writes, after `message` was sent to it.

        CourseError WORKER_TIMEOUT when that takes longer than `seconds`; OUTPUT_LIMIT when the
        line is longer than line_bytes (no more than about that is kept in memory);
        WORKER_FAILED when the process closes its side first, or the line is no strict JSON with
        at most MAX_LINE_DEPTH levels. After an error, and after a cancellation, what the process
        says next belongs to nothing: end it.
        """
        try:
            async with asyncio.timeout(seconds):
                self._writer.write(canonical_json(message) + b"\n")
                await self._writer.drain()
                line = await self._reader.readuntil(b"\n")
        except TimeoutError:
            raise CourseError("WORKER_TIMEOUT", f"no answer in {seconds} s") from None
        except asyncio.LimitOverrunError:
            raise CourseError("OUTPUT_LIMIT", f"more than {self.line_bytes} bytes") from None
        except (asyncio.IncompleteReadError, OSError):
            raise CourseError("WORKER_FAILED", "the worker has ended") from None
        return strict_json(
            line, code="WORKER_FAILED", max_bytes=self.line_bytes + 1, max_depth=MAX_LINE_DEPTH
        )

    async def end(self) -> None:
        """Return when the process, its whole group and its scratch folder are gone; repeatable.

        The group is killed, not asked: what must be asked has been asked before. Nothing here
        waits for anybody's good will.
        """
        if self.ended:
            return
        self.ended = True
        with suppress(subprocess.TimeoutExpired):
            self.exit_code = self._process.wait(0.1 if self._reader.at_eof() else 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._writer.close()
        try:
            await asyncio.wait({self._logging}, timeout=0.1)
        finally:
            self._logging.cancel()
            self._log.close()
            shutil.rmtree(self.scratch, ignore_errors=True)

    async def _keep(self, log: asyncio.StreamReader, most: int) -> None:
        with suppress(OSError):
            while chunk := await log.read(4_096):
                self.stderr += chunk[: most - len(self.stderr)]
