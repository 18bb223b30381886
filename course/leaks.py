"""Prove that a generated practice holds no answer.

Three proofs: every hole's body differs from the solution's as an AST; the public signatures are
the same; and no private name, comment, identifier or string constant that stands only in the
removed parts of the solution stands anywhere in the folder, byte by byte, caches included.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course.blank import Function, blank, find_holes
from course.manifest import Course
from course.outline import Chapter, holes_in
from course.signatures import public_signatures
from course.snapshot import checkpoint_before, read_tree
from course.syntax import parse

NAME_LENGTH = 4  # shorter names are words of the language, not answers
TEXT_LENGTH = 8  # characters of a string constant or comment that can give something away
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Secrets:
    """What stands only in the removed parts: names (matched as words) and texts (as substrings)."""

    names: frozenset[str]
    texts: frozenset[str]


def find_leaks(course: Course, chapter: Chapter, folder: Path) -> list[str]:
    """One sentence for each leak in the generated practice folder, naming the file."""
    solution = _sources(course.root / "solutions" / chapter.name)
    starter = {path: (folder / path).read_text("utf-8") for path in solution
               if (folder / path).is_file()}
    leaks = [leak for path in starter for leak in _same_parts(chapter, path, solution[path],
                                                              starter[path])]
    secrets = secrets_of(chapter, solution, _open_material(course, chapter))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            leaks += [f"{path.relative_to(folder).as_posix()} holds {what} of the solution"
                      for what in _found_in(path.read_bytes(), secrets)]
    return leaks


def secrets_of(chapter: Chapter, solution: Mapping[str, str], material: Iterable[str]) -> Secrets:
    """What the solution says, its scaffold does not say, and no open text says either."""
    names: set[str] = set()
    texts: set[str] = set()
    scaffolds = []
    for path, source in solution.items():
        scaffolds.append(blank(source, holes_in(chapter, path), path))
        names |= set(_identifiers(source))
        texts |= set(_texts(source))
    everything = "\n".join([*scaffolds, *material])
    open_words = set(_words(everything))
    return Secrets(
        frozenset(n for n in names if len(n) >= NAME_LENGTH and n not in open_words),
        frozenset(t for t in texts if len(t) >= TEXT_LENGTH and t not in everything),
    )


def _open_material(course: Course, chapter: Chapter) -> Iterator[str]:
    """All texts that a practice holds on purpose, as they stand in the course's own sources."""
    for file in checkpoint_before(course, chapter.id).values():
        yield file.data.decode("utf-8", "replace")
    for name in course.line_to(chapter.id):
        for path in sorted((course.root / "labs" / name).glob("*")):
            if path.is_file():
                yield path.read_text("utf-8", "replace")
    yield _words_of_the_kit()


@cache
def _words_of_the_kit() -> str:
    """What the kit itself says: its words stand in generated pages."""
    kit = Path(__file__).parent
    pages = (path.read_text("utf-8") for path in sorted(kit.rglob("*.j2")))
    texts = (text for path in sorted(kit.rglob("*.py")) for text in _texts(path.read_text("utf-8")))
    return "\n".join([*pages, *texts])


def _sources(folder: Path) -> dict[str, str]:
    return {path: file.data.decode() for path, file in read_tree(folder).items()
            if path.endswith(".py")}


def _same_parts(chapter: Chapter, path: str, solution: str, starter: str) -> Iterator[str]:
    names = list(holes_in(chapter, path))
    try:
        found = find_holes(starter, names)
    except SyntaxError as error:
        yield f"{path} is not readable Python: {error}"
        return
    for name, node in find_holes(solution, names).items():
        if name not in found:
            yield f"{path} does not define {name}"
        elif _normal(found[name]) == _normal(node):
            yield f"{path} still holds the answer of {name}"
    if names and public_signatures(solution) != public_signatures(starter):
        yield f"{path} has other public signatures than the solution"


def _normal(node: Function) -> str:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return "\n".join(ast.dump(statement) for statement in body)


def _identifiers(source: str) -> Iterator[str]:
    for node in ast.walk(parse(source)):
        for field in ("id", "attr", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def _texts(source: str) -> Iterator[str]:
    """String constants and comments."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.strip()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ").strip()


def _words(text: str) -> Iterator[str]:
    return (word.decode() for word in WORD.findall(text.encode("utf-8", "replace")))


def _found_in(data: bytes, secrets: Secrets) -> Iterator[str]:
    words = {word.decode() for word in WORD.findall(data)}
    for name in sorted(secrets.names & words):
        yield f"the name {name}"
    for text in sorted(secrets.texts):
        if text.encode("utf-8", "replace") in data:
            yield f"the text {text[:40]!r}"
