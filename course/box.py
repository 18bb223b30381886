"""Where submissions run: in a sandbox, or without one where the teacher said so."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.bare import run_bare
from course.bubblewrap import FOLDER
from course.leash import Limits
from course.provision import find_sandbox
from course.sandbox import Sandbox, SandboxResult

NONE = "none"
DESK, SCRATCH = "@desk@", "@scratch@"  # in a command: its folder, and one to write in


@dataclass(frozen=True)
class Box:
    """Runs commands on files, each time in a place that nobody used before."""

    sandbox: Sandbox | None = None

    @property
    def name(self) -> str:
        """`bubblewrap` or `none`, as results say it."""
        return NONE if self.sandbox is None else "bubblewrap"

    @property
    def python(self) -> str:
        return sys.executable

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes],
        stdin: bytes = b"",
        limits: Limits,
    ) -> SandboxResult:
        """Run the command in the folder of the files. Unavailable where that cannot be done."""
        if self.sandbox is None:
            return run_bare(command, files, stdin, limits)
        words = [word.replace(DESK, FOLDER).replace(SCRATCH, "/tmp") for word in command]
        return self.sandbox.run(words, files=files, stdin=stdin, limits=limits)


def open_box(kind: str, hidden: Sequence[Path]) -> Box:
    """The box that was asked for; SandboxMissing where there can be no sandbox."""
    return Box() if kind == NONE else Box(find_sandbox(hidden))
