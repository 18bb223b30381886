"""A report in GitHub's Markdown that shows what others wrote and never obeys it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from course.grades import Batch, Grade
from course.render.plain import line, plain
from course.render.wording import Item, count, items, number, red_items, remarks, score

# Words that mean the same with and without Markdown, whatever extensions read it.
CALM = re.compile(r"[^\W_]+(?:(?:[ ,、，。：；！？（）–]|(?<=\d)\.(?=\d))[^\W_]+)*")


def markdown(batch: Batch) -> Iterator[bytes]:
    """The report: a table of all submissions, then each with its labs and what is red."""
    sections = (text for grade in batch.grades for text in section(batch, grade))
    return (f"{text}\n".encode() for text in chain(head(batch), overview(batch), sections))


def head(batch: Batch) -> Iterator[str]:
    """The title, and what a reader must know about all verdicts."""
    yield f"# Grades of chapter {inline(batch.chapter)}: {inline(batch.title)}"
    yield ""
    for remark in remarks(batch):
        yield from (f"> {remark}", "")


def overview(batch: Batch) -> Iterator[str]:
    """One row a submission."""
    yield from ("| submission | status | points | of |", "|---|---|---:|---:|")
    for grade in batch.grades:
        points = f"{number(grade.points)} | {number(grade.max_points)}"
        yield f"| {inline(grade.name)} | {grade.status} | {points} |"
    yield ""


def section(batch: Batch, grade: Grade) -> Iterator[str]:
    """One submission: its labs, then a block for whatever is red."""
    yield from (f"## {inline(grade.name)}: {grade.status}, {score(grade)}", "")
    if grade.labs:
        yield from ("| lab | title | status | points | public tests | hidden probes |",
                    "|---|---|---|---:|---|---|")
    for item, lab in zip(items(batch, grade), grade.labs, strict=False):
        points = f"{number(item.points)} of {number(item.max_points)}"
        yield (f"| {inline(item.id)} | {inline(item.title)} | {item.status} | {points} "
               f"| {count(lab.public)} | {count(lab.probes)} |")
    yield ""
    for item in red_items(batch, grade):
        yield from (inline(item.name), "", *fence(item), "")
    for note in grade.notes:
        yield f"- {inline(note)}"
    yield ""


def inline(text: str) -> str:
    """The text on one line and in a table: as it is where it is calm, else as code.

    Code is the one place where neither Markdown nor what GitHub adds to it (links, mentions,
    emoji, formulas) is read. A bar ends a table cell even there, so it is made visible.
    """
    text = line(text).replace("|", "\\x7c")
    if CALM.fullmatch(text) or not text:
        return text
    if not text.strip(" "):
        return "\\x20" * len(text)
    ticks, ends = "`" * (_longest(text) + 1), text[0] + text[-1]
    apart = " " if "`" in ends or ends == "  " else ""  # a space on both sides is not shown
    return f"{ticks}{apart}{text}{apart}{ticks}"


def fence(item: Item) -> list[str]:
    """The item's lines in a fenced block that nothing in them can end."""
    text = plain(item.text)
    ticks = "`" * max(3, _longest(text) + 1)
    return [f"{ticks}text", text, ticks]


def _longest(text: str) -> int:
    """How long the longest run of backticks is."""
    return max(map(len, re.findall("`+", text)), default=0)
