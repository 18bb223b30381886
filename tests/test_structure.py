"""The house rules of the tool's own code: order of imports, who prints, who starts processes."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import course

PACKAGE = Path(course.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix()
                 for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
# Each module may import only those above it.
ORDER = """
errors results grades syntax outline packages rules manifest signatures snapshot blank advice
events scratch children runner labs
render/plain render/json render/pages practice faults desk start record find checkpoints
starters leaks strays texts
submission tarball folder archive placing intake
bubblewrap compiled descriptors leash overseer seccomp sandbox bare provision box
answers probes exam probe_proof feedback grading proofs verify doctor
render/report render/wording render/junit render/csv render/gradescope render/exercism
render/markdown render/github render/html render/formats gradescope_zip render/terminal
ledger batch dask_batch demo marking cli __main__
""".split()
APART = {"plugin", "probe_driver"}  # programs of their own, which import nothing of ours
PRINTERS = {"cli", "__main__", "render/terminal", "render/json"}
PROCESSES = {"children", "sandbox", "overseer", "bare"}


def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))


def imported_by(module: str) -> set[str]:
    found = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course"):
            name = (node.module or "").removeprefix("course").removeprefix(".").replace(".", "/")
            found |= {name} if name else {alias.name for alias in node.names}
    return {name for name in found if name and (PACKAGE / f"{name}.py").is_file()}


def test_every_module_has_its_place_in_the_order() -> None:
    """A new module is put where its imports allow."""
    assert sorted([*ORDER, *APART]) == MODULES


@pytest.mark.parametrize("module", ORDER)
def test_a_module_imports_only_those_above_it(module: str) -> None:
    """No arrow goes back."""
    assert imported_by(module) <= set(ORDER[: ORDER.index(module)])


@pytest.mark.parametrize("module", sorted(APART))
def test_programs_for_children_import_nothing_of_ours(module: str) -> None:
    """They run where the kit cannot be seen."""
    assert imported_by(module) == set()


@pytest.mark.parametrize("module", MODULES)
def test_only_children_and_sandbox_start_processes(module: str) -> None:
    """Every process that we start is started where it is also ended."""
    names = {node.attr for node in ast.walk(tree_of(module)) if isinstance(node, ast.Attribute)}
    starts = {"Popen", "check_output", "check_call", "system", "execv", "posix_spawn", "fork"}
    assert module in PROCESSES | APART or not names & starts


@pytest.mark.parametrize("module", MODULES)
def test_only_the_command_and_the_terminal_print(module: str) -> None:
    """Everything else returns values."""
    calls = {ast.unparse(node.func) for node in ast.walk(tree_of(module))
             if isinstance(node, ast.Call)}
    assert module in PRINTERS | APART or not calls & {"print", "click.echo", "sys.stdout.write"}


def test_a_command_loads_only_what_it_needs() -> None:
    """--help needs click alone; jinja2, rich, msgspec and pytest come with what uses them."""
    code = ("import sys, course.cli\n"
            "print([m for m in ('rich', 'jinja2', 'msgspec', 'pytest') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=PACKAGE.parent)
    assert done.stdout.strip() == "[]"


def test_sizes_stay_readable() -> None:
    """A list to look at, not a game: long modules and functions are warned about."""
    long = [f"{m}: {n} lines" for m in MODULES
            if (n := (PACKAGE / f"{m}.py").read_text("utf-8").count("\n")) > 260]
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 40:
                long.append(f"{module}.{node.name}: {(node.end_lineno or 0) - node.lineno} lines")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for text in long:
            warnings.warn(text, stacklevel=1)
    assert len(long) < len(MODULES)
