"""The harness as it stands after chapter s07, importable as `harness`, and skills to try it on."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = REPOSITORY / "checkpoints" / "skills-start"
LAYER = REPOSITORY / "solutions" / "s07-skills"

FOLD = Path(tempfile.mkdtemp(prefix="harness-"))
atexit.register(shutil.rmtree, FOLD, ignore_errors=True)
for tree in (BASE, LAYER):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(tree, FOLD, dirs_exist_ok=True, ignore=ignore)
sys.path.insert(0, str(FOLD / "src"))

WriteSkill = Callable[..., Path]


@pytest.fixture
def src() -> Path:
    """The source folder of the harness with the lesson in it."""
    return FOLD / "src"


@pytest.fixture
def write_skill(tmp_path: Path) -> WriteSkill:
    """Write tmp_path/skills/<name>/SKILL.md and return its path."""

    def write(name: str = "output-check", body: bytes = b"BODY\n", description: str = "d") -> Path:
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        header = f"---\nname: {name}\ndescription: {description}\n---\n"
        path.write_bytes(header.encode() + body)
        return path

    return write
