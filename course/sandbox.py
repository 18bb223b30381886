"""Run one command with nothing reachable and everything limited.

bubblewrap makes the walls (bubblewrap), a filter closes the kernel (seccomp), a leash holds the
limits (leash), an overseer outside reads and ends it (overseer). Nothing here waits for the
program's consent, and nothing it does reaches the caller but bytes under a cap.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from course import bubblewrap
from course.bubblewrap import INSIDE, Way
from course.descriptors import hold, pipe
from course.errors import Unavailable
from course.leash import Limits
from course.overseer import Ending, Overseer, Stop

NOT_FOUND = 127
KILLED = 128 + 9
OUT_OF_CPU_TIME = 128 + 24
NO_FILES: Mapping[str, bytes] = MappingProxyType({})
NO_BINDS: Mapping[str, Path] = MappingProxyType({})
NO_ENV: Mapping[str, str] = MappingProxyType({})
DEFAULT_LIMITS = Limits()


class SandboxFailed(Unavailable):
    """One sandbox could not be made: no verdict on the program that was to run in it."""

    kind = "sandbox"


@dataclass(frozen=True)
class SandboxResult:
    """What one run left. `exit_status` is 128 + n after signal n, 127 if there is no such command.

    It is the program's word, like its output: no proof of anything.
    """

    exit_status: int
    stdout: bytes
    stderr: bytes
    output_truncated: bool
    duration_s: float
    stopped: Stop = ""

    @property
    def timed_out(self) -> bool:
        """The clock, or the limit on processor time, ended it."""
        return self.stopped == "time" or self.exit_status == OUT_OF_CPU_TIME


@dataclass(frozen=True)
class Sandbox:
    """A way to make sandboxes that was seen to work. Each run gets a new one; threads may share.

    Folders in `hidden` are empty inside even where something visible contains them.
    """

    bwrap: str
    way: Way
    program: bytes
    hidden: tuple[Path, ...] = ()
    python: str = sys.executable

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] = NO_FILES,
        binds: Mapping[str, Path] = NO_BINDS,
        env: Mapping[str, str] = NO_ENV,
        stdin: bytes = b"",
        limits: Limits = DEFAULT_LIMITS,
    ) -> SandboxResult:
        """Run `command` in a folder that holds `files`; `binds` show paths from outside.

        Files and binds are read-only, and so is the folder unless limits.writable. Raises
        SandboxFailed where bubblewrap itself failed.
        """
        try:
            return _result(self._run(command, files, binds, env, stdin, limits))
        except OSError as failure:  # no descriptors, processes or memory left for one
            raise SandboxFailed(f"no sandbox could be started: {failure}") from failure

    def _run(
        self,
        command: Sequence[str],
        files: Mapping[str, bytes],
        binds: Mapping[str, Path],
        env: Mapping[str, str],
        stdin: bytes,
        limits: Limits,
    ) -> Ending:
        uid = bubblewrap.ordinary_uid(Path("/proc/self/uid_map").read_text())
        contents = bubblewrap.settings(uid if self.way is Way.ROOT else INSIDE)
        contents |= {bubblewrap.place_of(path): data for path, data in files.items()}
        with ExitStack() as held:
            status, status_end = pipe(held)
            gate_end, gate = pipe(held)
            passed = {place: hold(data, held) for place, data in contents.items()}
            options = bubblewrap.namespace_options(self.way) + bubblewrap.environment_options(env)
            options += bubblewrap.view_options(binds, self.hidden, passed, limits.scratch,
                                               writable=limits.writable)
            passed |= {"--json-status-fd": status_end.fileno(), "--block-fd": gate_end.fileno()}
            passed["--seccomp"] = hold(self.program, held)
            for option in ("--json-status-fd", "--block-fd", "--seccomp"):
                options += [option, str(passed[option])]
            passed["--args"] = hold(bubblewrap.as_arguments(options), held)
            argv = [self.bwrap, "--args", str(passed["--args"]), "--"]
            argv += [*bubblewrap.drop_command(self.way, uid), *command]
            with self._start(argv, tuple(passed.values()), hold(stdin, held), uid) as process:
                status_end.close()
                gate_end.close()
                return Overseer(process, status.fileno(), limits).oversee(gate.fileno())

    def _start(
        self, argv: list[str], passed: tuple[int, ...], stdin: int, uid: int
    ) -> subprocess.Popen[bytes]:
        drop = bubblewrap.may_drop() and self.way is not Way.ROOT
        return subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=passed,
            env={},
            cwd="/",
            start_new_session=True,
            user=uid if drop else None,
            group=uid if drop else None,
            extra_groups=[] if drop else None,
        )


def _result(ending: Ending) -> SandboxResult:
    if ending.exit_status is None and not ending.stopped:
        said = ending.stderr.text().decode("utf-8", "backslashreplace").strip()
        if not said.startswith("bwrap: execvp"):
            raise SandboxFailed(said[-500:] or "bubblewrap ended without a word")
    unreported = KILLED if ending.stopped else NOT_FOUND
    return SandboxResult(
        unreported if ending.exit_status is None else ending.exit_status,
        ending.stdout.text(),
        ending.stderr.text(),
        ending.stdout.truncated or ending.stderr.truncated,
        ending.duration_s,
        ending.stopped,
    )
