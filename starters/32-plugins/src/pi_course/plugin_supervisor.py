"""When a worker breaks: nobody waits for it, nobody restarts it in a circle, nobody hides it."""

from __future__ import annotations

import asyncio
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
        self._failures: dict[str, int] = {}
        self._closed_until: dict[str, int] = {}

    def check(self, digest: str) -> None:
        """Return nothing when this content may be started or called now.

        CourseError WORKER_BACKOFF while the wait after a failure lasts, QUARANTINED after
        policy.failures failures in a row: no time ends that, only enable.
        """
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")

    def failed(self, digest: str) -> None:
        """Count a failure; the wait is base_ms, then twice as long each time, up to cap_ms."""
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")

    def succeeded(self, digest: str) -> None:
        """Forget the failures of this content: they were not in a row. A quarantine stays."""
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")

    def enable(self, digest: str) -> None:
        """Let this content start again, as if it had never failed: the act of a person."""
        self._failures.pop(digest, None)
        self._closed_until.pop(digest, None)


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

    async def call(self, tool: str, arguments: dict[str, Any], ctx: ExecContext) -> ToolOutput:
        """Return what the tool answers, or an error output with details {"code": …}.

        The codes are those of start, of PluginWorker.call and of Quarantine.check. One of
        CRASHES counts as one failure of the content, however many calls it costs; an answer,
        also that of a tool that failed, ends the row. After an error the next call starts a
        new worker, if the quarantine allows.
        """
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")

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
