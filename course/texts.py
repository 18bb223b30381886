"""The chapter texts: both languages there, and every command in them works.

A command is a line of an ```sh fence. It is run in a solved practice folder and must exit 0;
one that is meant to end otherwise says so in a comment at its end: `# exit 1`. Of a plain
`course test` or `course fault` only the names are looked up: that every lab is green and every
fault killed is proved elsewhere, once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from course.children import run_command
from course.desk import chosen_faults, select
from course.errors import CourseError
from course.manifest import Course
from course.outline import Chapter
from course.practice import open_practice
from course.strays import TEXTS

FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#\s*exit (\d+)\s*$")
NAMED = re.compile(r"course (test|fault)(?: ([\w.][\w.-]*))?")
# The proof itself makes the folder and stands in it.
PROVED_ELSEWHERE = ("course practice", "cd ")


def empty_texts(course: Course, chapter: Chapter) -> list[str]:
    """One sentence for each text of the chapter that is missing or empty."""
    folder = course.root / "labs" / chapter.name
    return [f"labs/{chapter.name}/{name} is missing or empty" for name in TEXTS
            if not (folder / name).is_file() or not (folder / name).read_text("utf-8").strip()]


def commands(course: Course, chapter: Chapter) -> dict[str, str]:
    """Every command line of the chapter's texts, with the text it stands in."""
    found: dict[str, str] = {}
    for name in TEXTS:
        path = course.root / "labs" / chapter.name / name
        for line in _lines(path.read_text("utf-8") if path.is_file() else ""):
            found.setdefault(line, f"labs/{chapter.name}/{name}")
    return found


def try_command(line: str, where: str, solved: Path) -> str | None:
    """Run one command of a text in a solved practice; what is wrong with it, or None."""
    expected = int(found[1]) if (found := EXIT.search(line)) else 0
    text = line.split(" #", 1)[0].strip()
    if not expected and (named := NAMED.fullmatch(text)):
        return _unknown_name(named[1], named[2], where, solved)
    if text.startswith(PROVED_ELSEWHERE):
        return None
    try:
        shlex.split(text)
    except ValueError as error:
        return f"{where}: {line!r} is no command: {error}"
    status, output = run_command(text, solved)
    if status != expected:
        tail = output.strip().splitlines()[-1:] or [""]
        return f"{where}: {text!r} exits {status}, not {expected}: {tail[0]}"
    return None


def _unknown_name(verb: str, name: str | None, where: str, solved: Path) -> str | None:
    """What is wrong with the name that a `course test` or `course fault` is given, or None."""
    look_up = select if verb == "test" else chosen_faults
    try:
        look_up(open_practice(solved), name)
    except CourseError as problem:
        return f"{where}: course {verb} {name or ''}: {problem.message}"
    return None


def _lines(text: str) -> Iterator[str]:
    for block in FENCE.findall(text):
        for line in block.splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.strip()
