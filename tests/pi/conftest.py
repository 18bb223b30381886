"""The package as it stands after chapter 12, importable as `pi_course` by the tests of this folder.

Chapters 00 to 11 are what is tested here; 12 is on top, so that they are tested where they end up.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from course.manifest import load_course
from course.snapshot import checkpoint, write_tree

REPOSITORY = Path(__file__).resolve().parents[2]
FOLD = Path(tempfile.mkdtemp(prefix="pi-"))
atexit.register(shutil.rmtree, FOLD, ignore_errors=True)
write_tree(checkpoint(load_course(REPOSITORY), "12"), FOLD)
sys.path.insert(0, str(FOLD / "src"))


@pytest.fixture
def fold() -> Path:
    """The folder with the whole checkpoint: src/ and examples/."""
    return FOLD


@pytest.fixture
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: what is on it is looked at, not when it got there."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
