"""A child process that is read by pieces into a buffer of our own."""

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

    async def _keep(self, log: asyncio.StreamReader, most: int) -> None:
        with suppress(OSError):
            while chunk := await log.read(4_096):
                self.stderr += chunk[: most - len(self.stderr)]

    async def exchange(self, message: JSONValue, seconds: float) -> JSONValue:
        """Write and read side by side, until there is a line or too much."""
        try:
            line = await asyncio.wait_for(self._line_after(message), seconds)
        except TimeoutError:
            raise CourseError("WORKER_TIMEOUT", "no answer in time") from None
        except OSError:
            raise CourseError("WORKER_FAILED", "the worker is not there any more") from None
        size = len(line)
        return strict_json(line, code="WORKER_FAILED", max_bytes=size, max_depth=MAX_LINE_DEPTH)

    async def _line_after(self, message: JSONValue) -> bytes:
        self._writer.writelines([canonical_json(message), b"\n"])
        sending = asyncio.ensure_future(self._writer.drain())
        try:
            held = bytearray(self._left)
            while b"\n" not in held:
                if len(held) > self.line_bytes:
                    raise CourseError("OUTPUT_LIMIT", "too long a line")
                piece = await self._reader.read(8_192)
                if not piece:
                    raise CourseError("WORKER_FAILED", "the worker closed its side")
                held += piece
            await sending
        finally:
            sending.cancel()
            sending.add_done_callback(lambda done: done.cancelled() or done.exception())
        line, _, self._left = bytes(held).partition(b"\n")
        if len(line) > self.line_bytes:
            raise CourseError("OUTPUT_LIMIT", "too long a line")
        return line

    _left = b""

    async def end(self) -> None:
        """Whoever comes second waits for the first."""
        if self._ending is None:
            self.ended = True
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    _ending: asyncio.Future[None] | None = None

    async def _end(self) -> None:
        for _ in range(5 if self._reader.at_eof() else 1):
            self.exit_code = self._process.poll()
            if self.exit_code is not None:
                break
            await asyncio.sleep(0.01)
        try:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            while self._process.poll() is None:
                await asyncio.sleep(0.001)
            self._writer.transport.abort()
            with suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._logging), 0.05)
            self._logging.cancel()
            self._log.transport.abort()
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
