"""GitHub Actions: workflow commands for a log, and a summary for the page of the run."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import chain

from course.grades import Batch, Grade, Status
from course.render.markdown import head, overview, section
from course.render.plain import line, plain, shortened
from course.render.wording import NO_VERDICT, Item, items, red_items, remarks, score

MOST_SUMMARY = 900_000  # bytes; GitHub refuses a summary of more than 1 MiB
MOST_ANNOTATION = 1_000


def log(batch: Batch) -> Iterator[bytes]:
    """What to print in a step: one group a submission, one error for each that is not passed."""
    return (f"{text}\n".encode() for text in commands(batch, secrets.token_hex(16)))


def summary(batch: Batch) -> Iterator[bytes]:
    """What to append to $GITHUB_STEP_SUMMARY: the Markdown report, as much of it as fits."""
    table = _within(MOST_SUMMARY, chain(head(batch), overview(batch)))
    if table is None:
        yield b"The summary is too long for this page; see the report.\n"
        return
    yield table
    room = MOST_SUMMARY - len(table)
    for number, grade in enumerate(batch.grades):
        part = _within(room, section(batch, grade))
        if part is None:
            left = len(batch.grades) - number
            yield f"… {left:,} more submissions are in the report, not here: too long.\n".encode()
            return
        yield part
        room -= len(part)


def commands(batch: Batch, token: str) -> Iterator[str]:
    """The lines of the log. What others wrote stands where the runner obeys only the token."""
    for remark in remarks(batch):
        yield f"::warning title=Verdicts::{data(remark)}"
    for grade in batch.grades:
        title = f"{grade.name}: {grade.status}, {score(grade)}"
        red = red_items(batch, grade)
        judged = red if grade.status in NO_VERDICT else items(batch, grade)
        yield f"::group::{data(title)}"
        yield f"::stop-commands::{token}"
        said = (f"{item.name}: {item.status}\n{item.text}" for item in judged)
        for text in (*grade.notes, *said):
            yield from (f"| {part}" for part in plain(text).split("\n"))
        yield from (f"::{token}::", "::endgroup::")
        if grade.status is not Status.PASSED:
            yield _error(grade, title, red, alone=len(batch.grades) == 1)


def data(text: str) -> str:
    """The message of a workflow command, on its one line."""
    harmless = plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return harmless.replace("##[", "##\\x5b")  # an older form of commands, read anywhere in a line


def value(text: str) -> str:
    """The value of a workflow command's property."""
    return data(line(text)).replace(":", "%3A").replace(",", "%2C")


def _within(room: int, texts: Iterable[str]) -> bytes | None:
    """The lines, or None where they are longer than `room`; no more than that is held."""
    held = bytearray()
    for text in texts:
        held += f"{text}\n".encode()
        if len(held) > room:
            return None
    return bytes(held)


def _error(grade: Grade, title: str, red: list[Item], *, alone: bool) -> str:
    """An annotation; on a line of the repository where that is the submission itself."""
    where = ""
    error = grade.first_red.error if grade.first_red else None
    if alone and error and error.file:
        where = f"file={value(error.file)}," + (f"line={error.line}," if error.line else "")
    text = "\n".join(f"{item.name}: {item.status}\n{item.text}" for item in red)
    return f"::error {where}title={value(title)}::{data(shortened(text, MOST_ANNOTATION))}"
