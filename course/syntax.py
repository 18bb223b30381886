"""Reading Python source as a syntax tree, safely from several threads."""

from __future__ import annotations

import ast
import threading

# Building a tree keeps its recursion depth in the interpreter, not in the thread, up to
# CPython 3.12: two threads at once can fail with "AST constructor recursion depth mismatch".
_ONE_AT_A_TIME = threading.Lock()


def parse(source: str | bytes, filename: str = "<source>") -> ast.Module:
    """The module's tree. SyntaxError or ValueError as `ast.parse` raises them."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, filename=filename)
