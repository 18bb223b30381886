"""One sentence of advice beside a raw error, for the errors that learners meet most."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from course.results import CaseError


def advise(
    error: CaseError, folder: Path, first_reds: Mapping[str, str], lab_id: str = ""
) -> str | None:
    """What to do about this error of a lab's test, or None where the error says it all.

    `first_reds` maps each first red to the lab whose scaffold raises it.
    """
    if error.type == "NotImplementedError" and error.first_line in first_reds:
        lab = first_reds[error.first_line]
        return ("not written yet: this is the place to start" if lab == lab_id
                else f"lab {lab} is not written yet: start there")
    for type_pattern, message_pattern, text in _ADVICE:
        if re.fullmatch(type_pattern, error.type) and (
            found := re.search(message_pattern, error.message)
        ):
            return text.format(*found.groups(), where=error.file or "the module")
    if missing := _missing_name(error):
        return missing + _did_you_mean(error, folder)
    return None


def shadowing(folder: Path, sources: Iterable[str] = ("src",)) -> list[str]:
    """Notes about learner files that carry the name of a standard module."""
    notes = []
    for source in ("", *sources):
        for path in sorted((folder / source).glob("*")):
            name = path.stem if path.suffix == ".py" else path.name if path.is_dir() else ""
            if name in sys.stdlib_module_names:
                shown = path.relative_to(folder).as_posix()
                notes.append(f"{shown} has the name of a standard module; here Python takes the "
                             "standard one, elsewhere perhaps yours: rename it")
    return notes


def missing_file(folder: Path, path: str) -> str:
    """What stands in the place of a learner's file that is not there."""
    wanted = folder / path
    near = sorted(p.name for p in wanted.parent.glob("*.py")) if wanted.parent.is_dir() else []
    close = difflib.get_close_matches(wanted.name, near, n=1, cutoff=0.5)
    return f"; {wanted.parent.relative_to(folder).as_posix()}/{close[0]} looks like it" if (
        close) else ""


_ADVICE = (
    ("SystemExit", "", "{where} ends the interpreter; put what is only for running it directly "
     'under `if __name__ == "__main__":`'),
    ("ImportError", "attempted relative import", "write `from pi_course.x import y` with the "
     "package's full name instead of a leading dot"),
    ("EOFError", "EOF when reading a line", "tests give no keyboard input: take the value as a "
     "parameter instead of calling input()"),
    ("OSError", "reading from stdin", "tests give no keyboard input: take the value as a "
     "parameter instead of calling input()"),
    ("Failed", r"Timeout \(?>?([\d.]+)s", "the test's limit is {0} s: look for a loop without an "
     "end or an await that nothing answers"),
    ("Timeout", "", "look for a loop without an end; nothing may wait for ever, at import least "
     "of all"),
    ("Crashed", "os._exit", "something called os._exit or ended the process; a test can only be "
     "green if the process lives on"),
    ("KeyboardInterrupt|Exit", "", "the code under test stopped the whole test run; raise an "
     "ordinary exception instead"),
    ("RecursionError", "", "a function calls itself without coming nearer to its end"),
    ("MemoryError", "", "the process reached its memory limit"),
    ("IndentationError|TabError", "", "look at the spaces at the start of that line and the one "
     "above it"),
)


def _missing_name(error: CaseError) -> str | None:
    patterns = (
        (r"cannot import name '(\w+)' from '([\w.]+)'", "define `{0}` in module {1}"),
        (r"module '([\w.]+)' has no attribute '(\w+)'", "define `{1}` in module {0}"),
        (r"No module named '([\w.]+)'", "module {0} is not there: was its file renamed or moved?"),
    )
    if error.type in ("ImportError", "AttributeError", "ModuleNotFoundError"):
        for pattern, text in patterns:
            if found := re.search(pattern, error.message):
                return text.format(*found.groups())
    return None


def _did_you_mean(error: CaseError, folder: Path) -> str:
    found = re.search(r"No module named '([\w.]+)'", error.message)
    return missing_file(folder, f"src/{found[1].replace('.', '/')}.py") if found else ""
