"""Folders of our own outside everybody else's, gone afterwards whatever happened."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder in the temporary folder; removed at the end, also after an interrupt."""
    path = Path(tempfile.gettempdir()).resolve() / f"course-{os.getpid()}-{time.monotonic_ns()}"
    try:
        path.mkdir(mode=0o700)
        yield path
    finally:
        remove_tree(path)


def remove_tree(path: Path) -> None:
    """Remove a folder that we made, read-only parts included; a missing one is fine."""

    def make_writable(function: Any, name: str, _: Any) -> None:
        with suppress(OSError):
            Path(name).parent.chmod(0o700)
            Path(name).chmod(0o700)
            function(name)

    shutil.rmtree(path, onerror=make_writable)
