"""Code of the course made ready once for many runs: modules compiled, tests rewritten.

Only the course's own files: a submission is compiled where it runs, never here.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Mapping
from contextlib import suppress
from types import CodeType

from course.bubblewrap import FOLDER

PROBES = "probes.py"
COMPILED = ".kit/compiled.bin"  # in the box; programs there look files up by their place


def compile_tree(files: Mapping[str, bytes], folder: str = FOLDER) -> dict[str, CodeType]:
    """The code of modules and tests by the place that they will have in `folder`.

    What cannot be made ready is left to whoever runs it.
    """
    made = {}
    for path, source in files.items():
        place = f"{folder}/{path}"
        compiled = _rewritten if path.startswith("tests/") else _compiled
        with suppress(SyntaxError, ValueError):
            if path.endswith(".py") and (code := compiled(place, source)):
                made[place] = code
    return made


def compile_probes(source: str) -> dict[str, CodeType]:
    """The probes, which only their driver may ever have."""
    return {PROBES: _compiled(PROBES, source)}


def packed(table: Mapping[str, CodeType]) -> bytes:
    """The table as the programs in the box read it."""
    return marshal.dumps(dict(table))


def _compiled(place: str, source: bytes | str) -> CodeType:
    return compile(source, place, "exec", dont_inherit=True)


def _rewritten(place: str, source: bytes) -> CodeType | None:
    """The test module as pytest would rewrite it, if this pytest still lets itself be asked."""
    try:
        from _pytest.assertion.rewrite import rewrite_asserts

        tree = ast.parse(source, filename=place)
        rewrite_asserts(tree, source, place)
        return compile(tree, place, "exec", dont_inherit=True)
    except (ImportError, TypeError, AttributeError):
        return None
