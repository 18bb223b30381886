"""The harness as it stands before the lesson: it stands by itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parents[2] / "checkpoints" / "skills-start" / "src"
MODULES = sorted(path.stem for path in (BASE / "harness").glob("[a-z]*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_module_needs_nothing_of_the_lesson(module: str) -> None:
    """Each module imports alone, without the lesson and without the site's packages."""
    subprocess.run(
        [sys.executable, "-S", "-c", f"import harness.{module}"], check=True, timeout=30,
        env={"PYTHONPATH": str(BASE), "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.parametrize("module", MODULES)
def test_module_uses_the_standard_library_only(module: str) -> None:
    """Every import is of the standard library or of the harness itself."""
    tree = ast.parse((BASE / "harness" / f"{module}.py").read_text(encoding="utf-8"))
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
             for alias in node.names}
    found |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in found}
    assert roots <= {*sys.stdlib_module_names, "harness"}


def test_no_skill_is_known_yet() -> None:
    """Nothing in the base tree's code speaks of load_skill: the lesson adds it."""
    for path in (BASE / "harness").glob("*.py"):
        assert "skill" not in path.read_text(encoding="utf-8").lower(), path.name
