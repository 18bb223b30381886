"""Open descriptors to hand to a child process, closed when the stack that holds them unwinds."""

from __future__ import annotations

import fcntl
import io
import os
from contextlib import ExitStack


def pipe(held: ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """Both ends of a pipe, the reading end first; closing one early is fine."""
    reading, writing = os.pipe()
    return held.enter_context(io.FileIO(reading)), held.enter_context(io.FileIO(writing, "w"))


def hold(data: bytes, held: ExitStack) -> int:
    """A descriptor from which `data` can be read, and to which nobody can write."""
    sealable = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    file = held.enter_context(io.FileIO(os.memfd_create("data", sealable), "r+"))
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    file.seek(0)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file.fileno()
