"""What the operating system is asked to keep from a worker. A manifest cannot keep anything.

plain       own session, empty environment, scratch folder and resource limits (plugin_process and
            plugin_worker_main see to these). Files and network are NOT held back: such a worker
            reads and writes whatever its user may, looks into the host's environment through
            /proc, and a process that leaves its group survives it.
bubblewrap  all of that, and on Linux: no network, a read-only view of the system, of other files
            and processes nothing at all but the workspace, and the end of the worker is the end
            of every process it started.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

PROBE_S = 2.0
"""How long bubblewrap may take to show that it works here."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", sys.base_prefix, sys.prefix)


class Launch(Protocol):
    """Turns the command of a worker into the command that starts it inside some isolation."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        scratch: Path,
        workspace: Path | None,
        permissions: Collection[str],
    ) -> list[str]:
        """Return the command to run instead of `argv`."""
        ...


def plain(
    argv: Sequence[str], *, scratch: Path, workspace: Path | None, permissions: Collection[str]
) -> list[str]:
    """Return `argv` as it is: only the isolation that every worker has."""
    return list(argv)


def bubblewrap(
    argv: Sequence[str], *, scratch: Path, workspace: Path | None, permissions: Collection[str]
) -> list[str]:
    """Return `argv` behind bwrap; "write" opens the workspace, "network" the network."""
    seen = [*_SYSTEM, str(Path(__file__).parent)]
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    command += ["--share-net"] if "network" in permissions else []
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    command += [part for path in seen for part in ("--ro-bind-try", path, path)]
    command += ["--bind", str(scratch), str(scratch)]
    if workspace is not None:
        command += ["--bind" if "write" in permissions else "--ro-bind", *[str(workspace)] * 2]
    return [*command, "--chdir", str(scratch), *argv]


def strongest() -> Launch:
    """Return bubblewrap where it is installed and allowed to work, plain elsewhere."""
    program = shutil.which("bwrap")
    if program is None:
        return plain
    probe = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        works = subprocess.run(probe, capture_output=True, timeout=PROBE_S).returncode == 0
    except (OSError, subprocess.SubprocessError):
        works = False
    return bubblewrap if works else plain
