"""Find a way to make sandboxes on this machine, or say what is missing and how to get it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.errors import Unavailable

if TYPE_CHECKING:  # needs Linux, and `course doctor` must be able to say so elsewhere
    from course.sandbox import Sandbox

INSTALL = """\
sudo apt-get install bubblewrap libseccomp2   # Debian, Ubuntu
sudo dnf install bubblewrap libseccomp        # Fedora"""
PERMIT = """\
sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # Ubuntu 24.04, GitHub runner
sudo sysctl -w user.max_user_namespaces=15000                   # where that number is 0
docker run --privileged …                                       # in a container; or instead:
docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \\
           --security-opt systempaths=unconfined …"""
ELSEWHERE = "grade in WSL, in a Linux container or in CI; learners need no sandbox"


class SandboxMissing(Unavailable):
    """No sandbox can be made here; says what is missing and how to get it."""

    kind = "sandbox"


@dataclass(frozen=True)
class Check:
    """One line of `course doctor`: what was looked for, what was found, what to type if not ok."""

    name: str
    ok: bool
    found: str
    next_command: str = ""


def find_sandbox(hidden: Sequence[Path] = ()) -> Sandbox:
    """A sandbox that was seen to run the interpreter; SandboxMissing says why there is none.

    Folders in `hidden` (the course's root) will be empty inside wherever they could be seen.
    """
    if sys.platform != "linux":
        raise SandboxMissing(f"a sandbox needs Linux; this is {sys.platform}", ELSEWHERE)
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxMissing("bubblewrap (bwrap) is not installed", INSTALL)
    program = _filter()
    from course.bubblewrap import ways
    from course.sandbox import Sandbox

    reasons = []
    for way in ways():
        sandbox = Sandbox(bwrap, way, program, tuple(hidden))
        reason = _why_not(sandbox)
        if not reason:
            return sandbox
        reasons.append(f"{way}: {reason}")
    raise SandboxMissing("\n".join(["no sandbox can be made here", *reasons]), PERMIT)


def probe_sandbox() -> list[Check]:
    """What `course doctor` says about the sandbox. Runs one, to be sure."""
    if sys.platform != "linux":
        return [Check("sandbox", False, f"needs Linux; this is {sys.platform}", ELSEWHERE)]
    bwrap = shutil.which("bwrap")
    checks = [Check("bubblewrap", bool(bwrap), bwrap or "not found", "" if bwrap else INSTALL)]
    try:
        checks.append(Check("seccomp", True, f"{len(_filter()) // 8} instructions"))
    except SandboxMissing as missing:
        checks.append(Check("seccomp", False, missing.message, missing.next_command))
    try:
        checks.append(Check("sandbox", True, f"made by {find_sandbox().way}"))
    except SandboxMissing as missing:
        checks.append(Check("sandbox", False, missing.message, missing.next_command))
    return checks


def _filter() -> bytes:
    from course.seccomp import build_filter

    try:
        return build_filter()
    except Unavailable as missing:
        raise SandboxMissing(missing.message, INSTALL) from missing


def _why_not(sandbox: Sandbox) -> str:
    from course.sandbox import SandboxFailed

    try:
        result = sandbox.run([sandbox.python, "-I", "-S", "-c", "print('inside')"])
    except SandboxFailed as failure:
        return failure.message
    return "" if result.stdout == b"inside\n" else f"{sandbox.python} does not run inside"
