"""Public signatures, read from source text: what a build compares and a scaffold must keep."""

from __future__ import annotations

import ast

from course.syntax import parse

Parameter = tuple[str, str, bool]  # name, kind, has a default
Signatures = dict[str, list[Parameter]]


def public_signatures(source: str | bytes) -> Signatures:
    """Qualname → parameters, for every public function, class and method of a module."""
    found: Signatures = {}
    for node in parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _public(node.name):
            found[node.name] = _parameters(node.args)
        elif isinstance(node, ast.ClassDef) and _public(node.name):
            found[node.name] = []
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and _public(item.name):
                    found[f"{node.name}.{item.name}"] = _parameters(item.args)
    return found


def difference(expected: Signatures, found: Signatures, other_names: frozenset[str]) -> str | None:
    """The first public name that is missing or whose parameters no longer fit, or None.

    `other_names` are names that exist in the imported module by other means (an alias, a
    generated function): they count as present. More parameters are fine if they are optional.
    """
    for name, parameters in expected.items():
        if name not in found:
            if name.partition(".")[0] in other_names - set(found):
                continue
            return f"{name} is missing"
        theirs = {parameter[0]: parameter for parameter in found[name]}
        for parameter in parameters:
            if theirs.pop(parameter[0], None) != parameter:
                return f"{name} must keep its parameter {_shown(parameter)}"
        for extra in theirs.values():
            if not extra[2] and not extra[1].startswith("*"):
                return f"{name} has a parameter more: {extra[0]}"
    return None


def _public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__"


def _parameters(arguments: ast.arguments) -> list[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    plain = len(positional) - len(arguments.defaults)
    found: list[Parameter] = [
        (arg.arg, "positional-only" if arg in arguments.posonlyargs else "positional", i >= plain)
        for i, arg in enumerate(positional)
    ]
    if arguments.vararg:
        found.append((arguments.vararg.arg, "*", True))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((arg.arg, "keyword-only", default is not None))
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, "**", True))
    return found


def _shown(parameter: Parameter) -> str:
    name, kind, has_default = parameter
    return f"{name} ({kind}{', with a default' if has_default else ''})"
