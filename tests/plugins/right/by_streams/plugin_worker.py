"""A worker whose calls stand in a queue: each waits for the one before it."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_course.errors import CourseError
from pi_course.plugin_loader import Grant, VerifiedPlugin
from pi_course.plugin_manifest import PERMISSIONS
from pi_course.plugin_process import WorkerProcess
from pi_course.plugin_protocol import check_ready, hello_message, read_answer
from pi_course.plugin_sandbox import Launch, strongest
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.tools import ToolOutput
from pi_course.values import JSONValue, deep_freeze

WORKER_MAIN = Path(__file__).with_name("plugin_worker_main.py")


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """How long the host waits (seconds), how much it reads, what the system lets the worker use."""

    handshake_s: float = 5.0
    call_s: float = 5.0
    dispose_s: float = 0.5
    line_bytes: int = 65_536
    stderr_bytes: int = 4_096
    memory_bytes: int = 536_870_912
    cpu_s: int = 20
    open_files: int = 64
    file_bytes: int = 1_048_576


class PluginWorker:
    """A worker that has passed its handshake; dispose it when it is no longer needed.

    specs: the tools it offers, in the order of the manifest. process: pid, stderr, exit_code.
    """

    def __init__(
        self, process: WorkerProcess, specs: tuple[ToolSpec, ...], limits: WorkerLimits
    ) -> None:
        self.process = process
        self.specs = specs
        self.limits = limits
        self._last: asyncio.Future[None] | None = None
        self._ids = itertools.count(7)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, signal: AbortSignal | None = None
    ) -> ToolOutput:
        """One after the other; a call that does not come to an answer takes the worker along."""
        if tool not in {spec.name for spec in self.specs}:
            raise CourseError("UNKNOWN_TOOL", "not offered")
        async with self._alone():
            if self.process.ended:
                raise CourseError("WORKER_FAILED", "has ended")
            request = f"{tool}/{next(self._ids)}"
            message = deep_freeze(
                {"type": "call", "id": request, "tool": tool, "arguments": dict(arguments)}
            )
            answered = False
            try:
                output = read_answer(await self._answer(message, signal), request)
                answered = True
                return output
            finally:
                if not answered:
                    await self.process.end()

    async def _answer(self, message: JSONValue, signal: AbortSignal | None) -> JSONValue:
        exchange = asyncio.ensure_future(self.process.exchange(message, self.limits.call_s))
        others = [asyncio.ensure_future(signal.wait())] if signal else []
        try:
            done, _ = await asyncio.wait([exchange, *others], return_when="FIRST_COMPLETED")
            if exchange in done:
                return exchange.result()
            raise CourseError("ABORTED", "nobody waits any more")
        finally:
            for task in (exchange, *others):
                task.cancel()
            await asyncio.gather(exchange, *others, return_exceptions=True)

    async def dispose(self) -> None:
        """The last one in the queue."""
        async with self._alone():
            if self.process.ended:
                return
            with suppress(CourseError):
                await self.process.exchange({"type": "dispose"}, self.limits.dispose_s)
            await self.process.end()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        before, mine = self._last, asyncio.get_running_loop().create_future()
        self._last = mine
        try:
            while before is not None and not before.done():
                await asyncio.wait([before])
            yield
        finally:
            if before is not None and not before.done():
                before.add_done_callback(lambda _: mine.done() or mine.set_result(None))
            else:
                mine.set_result(None)


def _command(limits: WorkerLimits, permissions: Collection[str]) -> list[str]:
    system = {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CORE": 0,
    }
    if "execute" not in permissions:
        system["RLIMIT_NPROC"] = 0
    python = [sys.executable, "-I", "-S", "-B", "-X", "utf8"]
    return [*python, str(WORKER_MAIN), json.dumps(system)]


async def spawn_worker(
    plugin: VerifiedPlugin,
    grant: Grant,
    *,
    workspace: Path | None = None,
    limits: WorkerLimits = WorkerLimits(),
    launch: Launch | None = None,
) -> PluginWorker:
    """What has been started is on a stack that ends it, until everything is right."""
    covered = [tool for tool in plugin.manifest.tools if set(tool.permissions) <= grant.permissions]
    if grant.digest != plugin.content.digest or not covered:
        raise CourseError("NOT_GRANTED", "nothing of this content was approved")
    granted = grant.permissions & set(plugin.manifest.permissions)
    permissions = sorted(granted, key=PERMISSIONS.index)

    def command(scratch: Path) -> list[str]:
        words = _command(limits, permissions)
        isolated = launch if launch is not None else strongest()
        return isolated(words, scratch=scratch, workspace=workspace, permissions=permissions)

    async with AsyncExitStack() as stack:
        process = await WorkerProcess.start(
            command, line_bytes=limits.line_bytes, stderr_bytes=limits.stderr_bytes
        )
        stack.push_async_callback(process.end)
        hello = hello_message(plugin, covered, permissions, workspace)
        answer = await process.exchange(hello, limits.handshake_s)
        worker = PluginWorker(process, check_ready(answer, plugin.content.digest, covered), limits)
        stack.pop_all()
    return worker
