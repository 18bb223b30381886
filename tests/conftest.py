"""The tiny course as a fixture, practice folders on it, and the command as a person types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from course.manifest import Course, load_course
from course.practice import Practice, make

TINY = Path(__file__).resolve().parent / "tiny_course"
REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Typed:
    """What a command ended with and printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def type_course(*words: str | Path, cwd: Path, **environment: str) -> Typed:
    """Run `course WORDS` in a real process, as a person would."""
    done = subprocess.run(
        [sys.executable, "-m", "course", *map(str, words)], cwd=cwd, capture_output=True,
        text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
    )
    return Typed(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def tiny() -> Course:
    """The tiny course where it lies; not to be written to."""
    return load_course(TINY)


@pytest.fixture
def own_tiny(tmp_path: Path) -> Path:
    """A copy of the tiny course that a test may break."""
    copy = tmp_path / "tiny"
    shutil.copytree(TINY, copy)
    return copy


@pytest.fixture
def desk(tiny: Course, tmp_path: Path) -> Practice:
    """A practice of chapter 02, as a learner gets it."""
    return make(tiny, tiny.chapter("02"), tmp_path / "desk", lang="en", prove=lambda _: None)


@pytest.fixture
def solve(tiny: Course) -> Callable[[Practice], Practice]:
    """Copies the reference solution of the desk's chapter into the desk."""

    def copy(practice: Practice) -> Practice:
        layer = tiny.root / "solutions" / practice.chapter.name
        shutil.copytree(layer, practice.folder, dirs_exist_ok=True)
        return practice

    return copy


@pytest.fixture
def edit() -> Callable[[Practice, str, str], None]:
    """Replaces a text that stands once in the learner's report.py."""

    def replace(practice: Practice, old: str, new: str) -> None:
        path = practice.folder / "src/tally/report.py"
        source = path.read_text("utf-8")
        assert source.count(old) == 1, f"{old!r} must stand once"
        path.write_text(source.replace(old, new), "utf-8")

    return replace
