"""The formats of a batch of grades, by name, and how they are written. Each is loaded when used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from course.grades import Batch

Renderer = Callable[["Batch"], Iterator[bytes]]  # the parts of a file, made one by one


@dataclass(frozen=True)
class Format:
    """File name → the function in course.render that makes it ("module:function").

    `single` is a format that holds one submission; of many, each gets a file of its own.
    """

    files: Mapping[str, str]
    single: bool = False

    def renderers(self) -> Iterator[tuple[str, Renderer]]:
        """File names with their functions."""
        for name, place in self.files.items():
            module, _, function = place.partition(":")
            yield name, cast(Renderer, getattr(import_module(f"course.render.{module}"), function))


FORMATS: Mapping[str, Format] = MappingProxyType({
    "results": Format({"results.json": "json:results"}),
    "junit": Format({"junit.xml": "junit:junit"}),
    "csv": Format({"grades.csv": "csv:table"}),
    "excel": Format({"grades.excel.csv": "csv:table_for_excel"}),
    "gradescope": Format({"gradescope.json": "gradescope:gradescope"}, single=True),
    "exercism": Format({"exercism.json": "exercism:exercism"}, single=True),
    "github": Format({"github.txt": "github:log", "github-summary.md": "github:summary"}),
    "markdown": Format({"grades.md": "markdown:markdown"}),
    "html": Format({"grades.html": "html:html"}),
})


def write_formats(batch: Batch, names: Iterable[str], out: Path) -> None:
    """Write the named formats below `out`, each file whole or not at all.

    Of the batch no more than one grade is held at a time, and of a file no more than a part.
    """
    from course.snapshot import replace_by_parts

    for name in dict.fromkeys(names):
        for path, parts in render(batch, FORMATS[name]):
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_by_parts(target, parts)


def render(batch: Batch, form: Format) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Each file of one format: its path, and its contents in parts."""
    for name, renderer in form.renderers():
        if not form.single or len(batch.grades) == 1:
            yield name, renderer(batch)
            continue
        folder = Path(name).stem
        for number, grade in enumerate(batch.grades, 1):
            path = f"{folder}/{number:04}-{safe_name(grade.name)}.json"
            yield path, renderer(replace(batch, grades=[grade]))


def safe_name(name: str) -> str:
    """A file name that reads like the submission's own and means nothing to any system."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60] or "submission"
