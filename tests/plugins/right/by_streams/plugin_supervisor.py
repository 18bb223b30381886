"""Quarantine by a list of failures; a supervisor that asks for the outcome and then judges it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pi_course.bench import Clock
from pi_course.errors import CourseError
from pi_course.plugin_worker import PluginWorker
from pi_course.schema import ToolSpec
from pi_course.tools import ExecContext, Tool, ToolOutput

CRASHES = frozenset({"MODULE_INVALID", "OUTPUT_LIMIT", "WORKER_FAILED", "WORKER_TIMEOUT"})
"""The codes that speak against the plugin; an abort and a refused grant do not."""


@dataclass(frozen=True, slots=True)
class CrashPolicy:
    """How many failures in a row make a quarantine, and how long to wait after one (ms)."""

    failures: int = 3
    base_ms: int = 1_000
    cap_ms: int = 30_000


class Quarantine:
    """How often each content (digest) has failed in a row; one for all plugins of a host."""

    def __init__(self, clock: Clock, policy: CrashPolicy = CrashPolicy()) -> None:
        self._clock = clock
        self._policy = policy
        self._times: dict[str, list[int]] = defaultdict(list)

    def check(self, digest: str) -> None:
        """The times of the failures in a row say everything."""
        times = self._times.get(digest, [])
        if len(times) >= self._policy.failures:
            raise CourseError("QUARANTINED", "closed until a person opens it")
        if times:
            wait = self._policy.base_ms << (len(times) - 1)
            if self._clock.now_ms() - times[-1] < min(wait, self._policy.cap_ms):
                raise CourseError("WORKER_BACKOFF", "not yet")

    def failed(self, digest: str) -> None:
        """One more time."""
        self._times[digest].append(self._clock.now_ms())

    def succeeded(self, digest: str) -> None:
        """A row that was not long enough is over."""
        if len(self._times[digest]) < self._policy.failures:
            self._times[digest].clear()

    def enable(self, digest: str) -> None:
        """As if nothing had been."""
        self._times.pop(digest, None)


class PluginSupervisor:
    """Keeps at most one worker for one content, and turns everything that goes wrong into results.

    start makes a worker (spawn_worker with its arguments, say). What it raises counts as well.
    """

    def __init__(
        self, digest: str, start: Callable[[], Awaitable[PluginWorker]], quarantine: Quarantine
    ) -> None:
        self._digest = digest
        self._start = start
        self._quarantine = quarantine
        self._worker: PluginWorker | None = None
        self._specs: tuple[ToolSpec, ...] = ()
        self._starting = asyncio.Lock()

    async def tools(self) -> tuple[Tool, ...]:
        """Return the plugin's tools for a ToolRegistry; starts the worker when none is running.

        CourseErrors are those of start and of Quarantine.check: a plugin that does not start is
        an error, never a plugin without tools.
        """
        worker = await self._running()
        return tuple(Tool(spec, partial(self.call, spec.name)) for spec in worker.specs)

    async def close(self) -> None:
        """Return when no worker is left. The next call would start one."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.dispose()

    async def _running(self) -> PluginWorker:
        async with self._starting:
            if self._worker is None or self._worker.process.ended:
                self._quarantine.check(self._digest)
                self._worker = await self._started()
            return self._worker

    async def _started(self) -> PluginWorker:
        try:
            worker = await self._start()
            if self._specs and worker.specs != self._specs:
                await worker.dispose()
                raise CourseError("MODULE_INVALID", "the restarted plugin defines other tools")
        except CourseError as error:
            if error.code in CRASHES:
                self._quarantine.failed(self._digest)
            raise
        self._specs = worker.specs
        return worker

    async def call(self, tool: str, arguments: dict[str, Any], ctx: ExecContext) -> ToolOutput:
        """Whatever a worker raises is put into words; the worker is judged afterwards."""
        used: list[PluginWorker] = []
        try:
            used.append(await self._running())
            output = await used[0].call(tool, arguments, signal=ctx.signal)
        except CourseError as error:
            if used and used[0] is self._worker and used[0].process.ended:
                self._worker = None
                if error.code in CRASHES:
                    self._quarantine.failed(self._digest)
            output = ToolOutput(str(error), is_error=True, details={"code": error.code})
        else:
            self._quarantine.succeeded(self._digest)
        return output
