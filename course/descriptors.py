"""Open descriptors to hand to a child process, closed when the stack that holds them unwinds."""

from __future__ import annotations

import fcntl
import io
import os
from contextlib import ExitStack

SEALABLE = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


def pipe(held: ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """Both ends of a pipe, the reading end first; closing one early is fine."""
    reading, writing = os.pipe()
    return held.enter_context(io.FileIO(reading)), held.enter_context(io.FileIO(writing, "w"))


def hold(data: bytes, held: ExitStack) -> int:
    """A descriptor from which `data` can be read, and to which nobody can write."""
    file = held.enter_context(io.FileIO(os.memfd_create("data", SEALABLE), "r+"))
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.seek(0)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
    return file.fileno()
