"""Code of the course made ready once for a whole batch: modules compiled, tests rewritten.

Only the course's own files: a submission is compiled where it runs, never here.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Mapping
from types import CodeType

from course.bubblewrap import FOLDER

COMPILED = ".kit/compiled.bin"  # in the box; programs there look files up by their place


def compile_all(modules: Mapping[str, bytes], tests: Mapping[str, bytes], probes: str) -> bytes:
    """Marshalled code by place; what cannot be made ready is left to the box."""
    table: dict[str, CodeType] = {}
    for path, source in modules.items():
        if path.endswith(".py"):
            table[f"{FOLDER}/{path}"] = compile(source, f"{FOLDER}/{path}", "exec",
                                                dont_inherit=True)
    for path, source in tests.items():
        if code := _rewritten(f"{FOLDER}/{path}", source):
            table[f"{FOLDER}/{path}"] = code
    table["probes.py"] = compile(probes, "probes.py", "exec", dont_inherit=True)
    return marshal.dumps(table)


def _rewritten(place: str, source: bytes) -> CodeType | None:
    """The test module as pytest would rewrite it, if this pytest still lets itself be asked."""
    try:
        from _pytest.assertion.rewrite import rewrite_asserts

        tree = ast.parse(source, filename=place)
        rewrite_asserts(tree, source, place)
        return compile(tree, place, "exec", dont_inherit=True)
    except (ImportError, TypeError, AttributeError):
        return None
