"""One plugin in one process of its own: a handshake, calls with a deadline, an end for certain.

A worker that is late, talks out of turn or says too much is not corrected. It is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_course.errors import CourseError
from pi_course.plugin_loader import Grant, VerifiedPlugin
from pi_course.plugin_manifest import PERMISSIONS, ToolDeclaration
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
        self._turn = asyncio.Lock()
        self._calls = 0

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, signal: AbortSignal | None = None
    ) -> ToolOutput:
        """Return what `tool` answers; of calls made at the same time each waits for its turn.

        Every call has an id that no other call of this worker had, and limits.call_s seconds
        from the moment it is sent. Codes of CourseError:
        UNKNOWN_TOOL    the worker does not offer it; nothing is sent
        WORKER_TIMEOUT  no answer in time     OUTPUT_LIMIT  an answer of more than line_bytes
        WORKER_FAILED   it ended (before or during the call), or answered no JSON, another call,
                        or something that read_answer does not read
        ABORTED         `signal` was set before the answer came
        After any of these but the first, and after a cancellation, the worker is ended: the code
        inside cannot be made to stop in any other way, and its next answer could belong to
        anything. All further calls get WORKER_FAILED.
        """
        if all(tool != spec.name for spec in self.specs):
            raise CourseError("UNKNOWN_TOOL", "the worker offers no tool of that name")
        async with self._turn:
            if self.process.ended:
                raise CourseError("WORKER_FAILED", f"{tool}: the worker has ended")
            self._calls += 1
            request = f"call-{self._calls}"
            message = deep_freeze(
                {"type": "call", "id": request, "tool": tool, "arguments": arguments}
            )
            try:
                exchange = self.process.exchange(message, self.limits.call_s)
                return read_answer(await _unless_aborted(exchange, signal), request)
            except BaseException:
                await self.process.end()
                raise

    async def dispose(self) -> None:
        """Return when the worker is gone: asked first, for dispose_s seconds, then ended.

        Waits for the call that is on its way. Repeatable, and never an error.
        """
        async with self._turn:
            if not self.process.ended:
                try:
                    with suppress(CourseError):
                        await self.process.exchange({"type": "dispose"}, self.limits.dispose_s)
                finally:
                    await self.process.end()


async def spawn_worker(
    plugin: VerifiedPlugin,
    grant: Grant,
    *,
    workspace: Path | None = None,
    limits: WorkerLimits = WorkerLimits(),
    launch: Launch | None = None,
) -> PluginWorker:
    """Return a worker for those tools of `plugin` whose permissions are all in `grant`.

    The command is WORKER_MAIN under this Python (-I -S -B, UTF-8) with the resource limits as
    its argument, handed to `launch` (None: strongest) for the isolation; a WorkerProcess runs it.
    The hello offers the granted tools and no more; what comes back must pass check_ready.

    Codes of CourseError; after each of them nothing is left of the process:
    NOT_GRANTED     the grant is for other content, or covers no tool; nothing was started
    MODULE_INVALID  as check_ready
    WORKER_FAILED   it cannot be started, ended, or answered no JSON
    WORKER_TIMEOUT  no answer in handshake_s      OUTPUT_LIMIT  one of more than line_bytes
    """
    tools = _granted(plugin, grant)
    asked = {permission for tool in tools for permission in tool.permissions}
    permissions = [one for one in PERMISSIONS if one in asked]
    isolate = launch or strongest()
    process = await WorkerProcess.start(
        lambda scratch: isolate(
            _command(limits, permissions),
            scratch=scratch,
            workspace=workspace,
            permissions=permissions,
        ),
        line_bytes=limits.line_bytes,
        stderr_bytes=limits.stderr_bytes,
    )
    hello = hello_message(plugin, tools, permissions, workspace)
    try:
        ready = await process.exchange(hello, limits.handshake_s)
        return PluginWorker(process, check_ready(ready, plugin.content.digest, tools), limits)
    except BaseException:
        await process.end()
        raise


def _granted(plugin: VerifiedPlugin, grant: Grant) -> tuple[ToolDeclaration, ...]:
    allowed = grant.permissions & set(plugin.manifest.permissions)
    tools = tuple(tool for tool in plugin.manifest.tools if allowed.issuperset(tool.permissions))
    if grant.digest != plugin.content.digest or not tools:
        raise CourseError("NOT_GRANTED", f"{plugin.manifest.name}: no tool of it was approved")
    return tools


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


async def _unless_aborted(
    work: Coroutine[Any, Any, JSONValue], signal: AbortSignal | None
) -> JSONValue:
    """What `work` returns, or ABORTED as soon as the signal is set."""
    if signal is None:
        return await work
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(signal.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise CourseError("ABORTED", "the call was aborted")
        return task.result()
    finally:
        task.cancel()
        stop.cancel()
