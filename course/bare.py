"""Run a command as a sandbox would, but without walls: only where a teacher insists.

What runs here has the rights of whoever grades. Its time, its files' size and its processes (as
far as they stay in its process group) are limited, and nothing else is.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from course.children import kill_group
from course.leash import Limits
from course.overseer import Capture
from course.sandbox import KILLED, SandboxResult
from course.scratch import scratch_folder

CHUNK = 64 * 1024


def run_bare(
    command: Sequence[str], files: Mapping[str, bytes], stdin: bytes, limits: Limits
) -> SandboxResult:
    """Run the command in a folder that holds the files; nothing of it is left afterwards.

    In the command, `@desk@` stands for that folder and `@scratch@` for one to write in.
    """
    with scratch_folder() as place:
        desk, scratch = place / "desk", place / "scratch"
        for folder in (desk, scratch):
            folder.mkdir()
        for path, data in files.items():
            (desk / path).parent.mkdir(parents=True, exist_ok=True)
            (desk / path).write_bytes(data)
        words = [w.replace("@desk@", str(desk)).replace("@scratch@", str(scratch))
                 for w in command]
        (place / "stdin").write_bytes(stdin)
        started = time.monotonic()
        status = _run(words, place, limits)
        duration = time.monotonic() - started
        out, err = (_captured(place / name, limits.output) for name in ("stdout", "stderr"))
    killed = status if status is None or status >= 0 else 128 - status
    return SandboxResult(KILLED if killed is None else killed, out.text(), err.text(),
                         out.truncated or err.truncated, duration,
                         "time" if status is None else "")


def _run(words: Sequence[str], place: Path, limits: Limits) -> int | None:
    """The exit status; None where the clock ended it."""
    with ((place / "stdin").open("rb") as stdin, (place / "stdout").open("wb") as stdout,
          (place / "stderr").open("wb") as stderr):
        process = subprocess.Popen(
            words, cwd=place / "desk", env=_environment(place / "scratch"), stdin=stdin,
            stdout=stdout, stderr=stderr, start_new_session=True,
        )
    try:
        with suppress(ProcessLookupError, AttributeError):  # only Linux can, from outside
            for kind, most in ((resource.RLIMIT_FSIZE, limits.file_size),
                               (resource.RLIMIT_CORE, 0)):
                resource.prlimit(process.pid, kind, (most, most))
        return process.wait(limits.wall_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(process)


def _environment(scratch: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(scratch), "TMPDIR": str(scratch),
            "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def _captured(path: Path, cap: int) -> Capture:
    kept = Capture(cap)
    with path.open("rb") as stream:
        while data := stream.read(CHUNK):
            kept.add(data)
    return kept
