"""Take the answers out of a module: what a learner starts from.

Every hole keeps its signature and docstring; its body becomes one `raise NotImplementedError`.
What only the removed bodies used goes too: private helpers, private classes and methods, private
constants, imports. Public types, constants and their docstrings stay. A hole that cannot be
taken out safely (one on a single line, one inside another, one defined twice) is refused.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from course.errors import CourseBroken
from course.syntax import parse

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Lines = tuple[int, int]  # first and last line, from 1, both included


def blank(source: str, holes: Mapping[str, str], where: str = "module") -> str:
    """The module without the bodies of `holes` (qualname → message) and what only they used."""
    blanked = blank_bodies(source, holes, where)
    used_before = set(_read_names(parse(source)))
    while (smaller := _drop_unused(blanked, used_before)) != blanked:
        blanked = smaller
    return _tidy(blanked)


def blank_bodies(source: str, holes: Mapping[str, str], where: str = "module") -> str:
    """The module with only the bodies of `holes` replaced; helpers stay as they are."""
    tree = parse(source)
    lines = source.splitlines(keepends=True)
    spans = [(_body_span(_find(tree, name, where), lines, where), name) for name in holes]
    spans.sort(reverse=True)
    for ((first, last), name), below in zip(spans, [None, *spans], strict=False):
        if below and last >= below[0][0]:
            raise CourseBroken(f"{where}: hole {name} has hole {below[1]} inside it")
        indent = " " * (_find(tree, name, where).col_offset + 4)
        lines[first - 1 : last] = [f"{indent}raise NotImplementedError({_quoted(holes[name])})\n"]
    return "".join(lines)


def find_holes(source: str, names: Sequence[str]) -> dict[str, Function]:
    """The functions and methods that `names` (qualnames) define in this module, where they do."""
    tree = parse(source)
    found = {name: _lookup(tree, name) for name in names}
    return {name: nodes[0] for name, nodes in found.items() if nodes}


def _find(tree: ast.Module, name: str, where: str) -> Function:
    nodes = _lookup(tree, name)
    if len(nodes) != 1:
        times = "twice" if nodes else "not at all"
        raise CourseBroken(f"{where}: hole {name} is defined {times}, must be once")
    return nodes[0]


def _lookup(tree: ast.Module, name: str) -> list[Function]:
    owner, _, last = name.rpartition(".")
    bodies: list[list[ast.stmt]] = [tree.body]
    if owner:
        bodies = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner]
    return [node for body in bodies for node in body
            if isinstance(node, Function) and node.name == last]


def _body_span(node: Function, lines: Sequence[str], where: str) -> Lines:
    """The lines that go: from after the docstring to the last line indented under the function."""
    first_statement = node.body[0]
    if first_statement.lineno <= _signature_end(node, lines):
        raise CourseBroken(f"{where}: hole {node.name} stands on one line; write its body below")
    has_docstring = ast.get_docstring(node, clean=False) is not None
    first = (first_statement.end_lineno or 0) + 1 if has_docstring else _signature_end(
        node, lines) + 1
    last = node.end_lineno or first
    for number in range(last + 1, len(lines) + 1):
        text = lines[number - 1]
        if text.strip() and len(text) - len(text.lstrip()) <= node.col_offset:
            break
        if text.strip():
            last = number
    return (first, max(first - 1, last))


def _signature_end(node: Function, lines: Sequence[str]) -> int:
    """The line that holds the colon which ends `def …:`."""
    number = max([node.lineno, *((sub.end_lineno or 0) for sub in _signature_parts(node))])
    limit = node.body[0].lineno
    while number < limit and not _code(lines[number - 1]).endswith(":"):
        number += 1
    return number


def _signature_parts(node: Function) -> Iterator[ast.expr | ast.arg]:
    arguments = node.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (part for part in (arguments.vararg, arguments.kwarg, node.returns) if part)
    yield from (default for default in (*arguments.defaults, *arguments.kw_defaults) if default)


def _code(line: str) -> str:
    return line.split("#", 1)[0].rstrip()


def _quoted(message: str) -> str:
    return '"' + message.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read_names(tree: ast.AST) -> Iterator[str]:
    """Every identifier that is read, attribute names and quoted annotations included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _names_in_text(node.value)


@lru_cache(maxsize=4096)
def _names_in_text(text: str) -> frozenset[str]:
    """The names of a quoted annotation; prose and plain lower-case words name nothing."""
    if text.isidentifier() and text.islower():
        return frozenset()
    if len(text) > 200 or (" " in text.strip() and "[" not in text and "|" not in text):
        return frozenset()
    try:
        return frozenset(node.id for node in ast.walk(parse(text.strip()))
                         if isinstance(node, ast.Name))
    except (SyntaxError, ValueError):
        return frozenset()


def _drop_unused(source: str, used_before: set[str]) -> str:
    """One round: take away each private definition and import that nothing left here reads."""
    tree = parse(source)
    lines = source.splitlines(keepends=True)
    doomed: list[tuple[Lines, str]] = []
    everywhere = Counter(_read_names(tree))
    for body, node in _statements(tree.body):
        if isinstance(node, Definition | ast.Assign | ast.AnnAssign):
            names, inside = _bound(node), Counter(_read_names(node))
            # What only the statement itself reads is unused: recursion keeps nothing alive.
            if names and all(_private(name) and everywhere[name] == inside[name]
                             for name in names):
                doomed.append((_whole(node, lines), ""))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            kept = [a for a in node.names
                    if _binding(a) in everywhere or _binding(a) not in used_before
                    or (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
            if len(kept) < len(node.names):
                only = len(body) == 1 and body is not tree.body
                doomed.append((_whole(node, lines), _import(node, kept) if kept or not only else
                               " " * node.col_offset + "pass\n"))
        elif isinstance(node, ast.If) and all(isinstance(sub, ast.Pass) for sub in node.body):
            doomed.append((_whole(node, lines), ""))
    for (first, last), instead in sorted(doomed, reverse=True):
        lines[first - 1 : last] = [instead] if instead else []
        if not instead:
            _close_gap(lines, first - 1)
    return "".join(lines)


def _close_gap(lines: list[str], place: int) -> None:
    """Leave as many empty lines where something was taken out as what follows there needs."""
    first, last = place, place
    while first > 0 and not lines[first - 1].strip():
        first -= 1
    while last < len(lines) and not lines[last].strip():
        last += 1
    following = lines[last] if last < len(lines) else ""
    if following.startswith(("def ", "async def ", "class ", "@")):
        wanted = 2
    elif following.startswith("#"):
        wanted = max(place - first, last - place)
    else:
        wanted = int(last > first)
    lines[first:last] = ["\n"] * (wanted if first > 0 and following else 0)


def _statements(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """Top-level statements, those under a top-level `if`, and the members of classes."""
    for node in body:
        yield body, node
        if isinstance(node, ast.If):
            yield from ((node.body, sub) for sub in node.body)
        elif isinstance(node, ast.ClassDef) and not _private(node.name):
            yield from ((node.body, sub) for sub in node.body if isinstance(sub, Function))


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, Definition):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _binding(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _import(node: ast.Import | ast.ImportFrom, kept: Sequence[ast.alias]) -> str:
    if not kept:
        return ""
    indent = " " * node.col_offset
    names = [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in kept]
    if isinstance(node, ast.Import):
        return f"{indent}import {', '.join(names)}\n"
    head = f"{indent}from {'.' * node.level}{node.module or ''} import "
    if len(head) + len(", ".join(names)) <= 100:
        return f"{head}{', '.join(names)}\n"
    return f"{head}(\n" + "".join(f"{indent}    {name},\n" for name in names) + f"{indent})\n"


def _whole(node: ast.stmt, lines: Sequence[str]) -> Lines:
    """The statement's lines with its decorators and the comment lines right above it."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return (first, node.end_lineno or node.lineno)


def _tidy(source: str) -> str:
    """At most two empty lines in a row, one inside a class, none at either end."""
    out: list[str] = []
    lines = source.splitlines()
    for number, line in enumerate(lines):
        following = next((later for later in lines[number:] if later.strip()), "")
        most = 1 if following.startswith((" ", "\t")) else 2
        if not line.strip() and not any(text.strip() for text in out[-most:]) and (
            len(out) >= most or not out
        ):
            continue
        out.append(line.rstrip() if not line.strip() else line)
    while out and not out[-1].strip():
        out.pop()
    return "\n".join([*out, ""])
