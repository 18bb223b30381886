"""One plugin in one process of its own: a handshake, calls with a deadline, an end for certain.

A worker that is late, talks out of turn or says too much is not corrected. It is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_course.plugin_loader import Grant, VerifiedPlugin
from pi_course.plugin_process import WorkerProcess
from pi_course.plugin_sandbox import Launch
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.tools import ToolOutput

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
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")

    async def dispose(self) -> None:
        """Return when the worker is gone: asked first, for dispose_s seconds, then ended.

        Waits for the call that is on its way. Repeatable, and never an error.
        """
        raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")


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
    raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")
