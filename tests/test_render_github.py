"""GitHub: the log as its runner reads it, and the summary within what the page takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hypothesis import given

from course.grades import Batch, Count, Grade, LabGrade, Status
from course.render.github import MOST_SUMMARY, commands, data, log, summary, value
from course.render.plain import line, plain
from tests.arbitrary import anything, batches, everything_hostile, ordinary, quickly, whole

KNOWN = {"group", "endgroup", "error", "warning", "stop-commands"}
ALL = KNOWN | {"add-mask", "set-output", "set-env", "add-path", "save-state", "notice", "debug",
               "echo", "add-matcher", "remove-matcher"}


@dataclass(frozen=True)
class Command:
    """A workflow command as the runner obeyed it."""

    name: str
    properties: dict[str, str]
    message: str


def obeyed(text: str) -> list[Command]:
    """What the runner would do with a log, from the rules of actions/runner (ActionCommand.cs):

    `::name key=value,…::message` at the start of a line, or `##[name key=value;…]message` anywhere
    in it; after stop-commands only the token is obeyed.
    """
    found, token = [], ""
    for each in re.split(r"\r\n|\r|\n", text):
        match = re.match(r"\s*::([^ :]+) ?(.*?)::(.*)", each) or re.match(
            r".*?##\[([^ \]]+) ?([^\]]*)\](.*)", each)
        if match is None or match[1] not in ALL | {token} or (token and match[1] != token):
            continue
        if token:
            token = ""
            continue
        pairs = (pair.partition("=") for pair in match[2].split(",") if pair)
        found.append(Command(match[1], {key: back(text) for key, _, text in pairs}, back(match[3])))
        token = match[3] if match[1] == "stop-commands" else ""
    assert not token
    return found


def back(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


@quickly
@given(batches())
def test_only_our_own_commands_are_obeyed(batch: Batch) -> None:
    """A group for each submission, and one error for each that did not pass."""
    found = obeyed(whole(log(batch)).decode())
    assert {command.name for command in found} <= KNOWN
    groups = [command for command in found if command.name == "group"]
    errors = [command for command in found if command.name == "error"]
    assert [group.message.startswith(data_back(grade.name)) for group, grade in zip(
        groups, batch.grades, strict=True)] == [True] * len(groups)
    red = [grade for grade in batch.grades if grade.status is not Status.PASSED]
    assert [error.properties["title"].startswith(value_back(grade.name))
            for error, grade in zip(errors, red, strict=True)] == [True] * len(red)
    assert all(set(error.properties) <= {"file", "line", "title"} for error in errors)


def data_back(text: str) -> str:
    return plain(text).replace("##[", "##\\x5b")


def value_back(text: str) -> str:
    return line(text).replace("##[", "##\\x5b")


@quickly
@given(anything)
def test_messages_and_properties_come_back_as_they_were(text: str) -> None:
    """Per cent signs, line ends, colons and commas survive; the message stays on one line."""
    assert back(data(text)) == data_back(text) and back(value(text)) == value_back(text)
    assert not {"\n", "\r"} & set(data(text)) and not {":", ",", "\n"} & set(value(text))


def test_what_others_wrote_is_fenced_by_a_token_that_is_new_each_time() -> None:
    """Every line of theirs stands between stop-commands and the token, behind a bar."""
    batch = everything_hostile()
    lines = list(commands(batch, "TOKEN"))
    inside = False
    for text in lines:
        if inside and text != "::TOKEN::":
            assert text.startswith("| ") and "\n" not in text
        inside = text == "::stop-commands::TOKEN" or (inside and text != "::TOKEN::")
    logs = [whole(log(ordinary())).decode() for _ in range(5)]
    tokens = {re.findall("stop-commands::(.*)", text)[0] for text in logs}
    assert len(tokens) == 5 and all(len(token) == 32 for token in tokens)


def test_one_submission_is_annotated_where_it_is_red() -> None:
    """In a learner's own repository the annotation lands on the line; in a batch it cannot."""
    batch = ordinary()
    (error,) = [c for c in obeyed(whole(log(replace(batch, grades=batch.grades[1:]))).decode())
                if c.name == "error"]
    assert error.properties == {"file": "src/tally/report.py", "line": "12",
                                "title": "ben: failed, 2 of 3 points"}
    (error,) = [c for c in obeyed(whole(log(batch)).decode()) if c.name == "error"]
    assert set(error.properties) == {"title"} and "lines keep their order" in error.message


def test_a_summary_always_fits_the_page() -> None:
    """Of very many submissions, as many as fit; what is left out is counted."""
    lab = LabGrade("1", "one", False, 1.0, Count(0, 1), Count(0, 1), ("x" * 2000,))
    grades = [Grade(f"s{number}", Status.FAILED, (lab,)) for number in range(1000)]
    text = whole(summary(replace(ordinary(), grades=grades)))
    assert MOST_SUMMARY * 0.99 < len(text) < 1024 * 1024 and b"more submissions" in text
    names = [Grade("n" * 2000, Status.FAILED, ()) for _ in range(1000)]
    assert len(whole(summary(replace(ordinary(), grades=names)))) < 1024
