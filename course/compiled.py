"""Code of the course made ready once for a whole batch: modules compiled, tests rewritten.

Only the course's own files: a submission is compiled where it runs, never here.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Mapping
from types import CodeType

from course.bubblewrap import FOLDER

PROBES = "probes.py"
COMPILED = ".kit/compiled.bin"  # in the box; programs there look files up by their place


def compile_modules(files: Mapping[str, bytes]) -> dict[str, CodeType]:
    """The modules' code by the place that they will have."""
    return {f"{FOLDER}/{path}": compile(source, f"{FOLDER}/{path}", "exec", dont_inherit=True)
            for path, source in files.items() if path.endswith(".py")}


def compile_tests(files: Mapping[str, bytes]) -> dict[str, CodeType]:
    """The same for tests, rewritten; what cannot be made ready is left to the box."""
    made = {f"{FOLDER}/{path}": _rewritten(f"{FOLDER}/{path}", source)
            for path, source in files.items()}
    return {place: code for place, code in made.items() if code}


def compile_probes(source: str) -> dict[str, CodeType]:
    """The probes, which only their driver may ever have."""
    return {PROBES: compile(source, PROBES, "exec", dont_inherit=True)}


def packed(table: Mapping[str, CodeType]) -> bytes:
    """The table as the programs in the box read it."""
    return marshal.dumps(dict(table))


def _rewritten(place: str, source: bytes) -> CodeType | None:
    """The test module as pytest would rewrite it, if this pytest still lets itself be asked."""
    try:
        from _pytest.assertion.rewrite import rewrite_asserts

        tree = ast.parse(source, filename=place)
        rewrite_asserts(tree, source, place)
        return compile(tree, place, "exec", dont_inherit=True)
    except (ImportError, TypeError, AttributeError):
        return None
