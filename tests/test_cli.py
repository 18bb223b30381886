"""The commands as typed: exit codes, one JSON document, errors on stderr, help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from course.practice import Practice
from tests.conftest import TINY, type_course

Solve = Callable[[Practice], Practice]


def test_test_json_is_the_run_document(desk: Practice) -> None:
    """course.run/1, with the declared total and the exact error; exit code 1."""
    typed = type_course("test", "02.1", "--json", cwd=desk.folder)
    run = typed.json
    assert typed.status == 1 and run["schema"] == "course.run/1"
    assert (run["chapter"], run["passed"], run["total"]) == ("02", 0, 2)
    assert [test["error"]["message"] for test in run["labs"][0]["tests"]] == [
        "Lab 02.1 top words 尚未实现"] * 2
    assert run["first_red"]["test"] == "tests/test_02_1_top.py::test_frequent_words_come_first"
    assert run["first_red"]["error"]["file"] == "src/tally/report.py"
    assert run["first_red"]["look_at"] == "Report.top"


def test_what_to_test(desk: Practice, solve: Solve) -> None:
    """A lab, a chapter, nothing (this chapter), all (through this chapter)."""
    solve(desk)
    for word, total in (("02.2", 1), ("01", 2), (None, 4), ("02", 4), ("all", 6)):
        typed = type_course("test", *([word] if word else []), "--json", cwd=desk.folder)
        assert (typed.status, typed.json["total"], typed.json["passed"]) == (0, total, total)


def test_a_lab_that_needs_a_red_one_is_blocked(desk: Practice) -> None:
    """Alone or with the others, the lab says which lab blocks it."""
    typed = type_course("test", "02.2", "--json", cwd=desk.folder)
    assert typed.json["labs"][0]["status"] == "blocked"
    assert typed.json["labs"][0]["blocked_by"] == ["02.1"]
    labs = type_course("test", "--json", cwd=desk.folder).json["labs"]
    assert [lab["status"] for lab in labs] == ["red", "blocked", "blocked"]


@pytest.mark.parametrize("words", [
    ("test", "9.9"), ("hint", "9.9"), ("fault", "9.9"), ("reset", "9.9"), ("nothing",),
    ("test", "--nothing"), ("practice", "02"),
])
def test_what_cannot_be_meant_is_usage(words: tuple[str, ...], desk: Practice) -> None:
    """Exit code 2 and the reason on stderr, no traceback."""
    typed = type_course(*words, cwd=desk.folder)
    assert typed.status == 2 and typed.err and "Traceback" not in typed.err


@pytest.mark.parametrize("words", [("test", "9.9", "--json"), ("test", "--json", "--nothing")])
def test_errors_are_json_too_where_asked(words: tuple[str, ...], desk: Practice) -> None:
    """One document with kind, message and next on stdout."""
    typed = type_course(*words, cwd=desk.folder)
    assert typed.status == 2 and set(typed.json["error"]) == {"kind", "message", "next"}


def test_build_fails_on_changed_signatures(desk: Practice, solve: Solve) -> None:
    """A renamed parameter is named; an optional one more is fine."""
    path = solve(desk).folder / "src/tally/report.py"
    source = path.read_text("utf-8")
    path.write_text(source.replace("def report_on(text: str)", "def report_on(text: str, x=1)"))
    assert type_course("build", "--json", cwd=desk.folder).status == 0
    path.write_text(source.replace("def top(self, most: int)", "def top(self, many: int)"))
    typed = type_course("build", "--json", cwd=desk.folder)
    assert typed.status == 1 and "Report.top" in typed.json["build"]["error"]["message"]
    assert type_course("test", "--json", cwd=desk.folder).status == 1


def test_build_accepts_a_function_defined_another_way(desk: Practice, solve: Solve) -> None:
    """An alias or a generated function of the right name is there."""
    path = solve(desk).folder / "src/tally/report.py"
    source = path.read_text("utf-8").replace("def report_on(", "def _other(")
    path.write_text(source + "\n\nreport_on = _other\n", "utf-8")
    assert type_course("build", cwd=desk.folder).status == 0
    assert type_course("test", cwd=desk.folder).status == 0


def test_a_renamed_module_is_named(desk: Practice, solve: Solve) -> None:
    """The missing file and the one that looks like it; every count holds."""
    solve(desk)
    (desk.folder / "src/tally/report.py").rename(desk.folder / "src/tally/reports.py")
    typed = type_course("test", "--json", cwd=desk.folder)
    error = typed.json["build"]["error"]
    assert typed.status == 1 and (typed.json["passed"], typed.json["total"]) == (0, 4)
    assert "src/tally/report.py is missing" in error["message"] and "reports.py" in error["message"]


def test_hints_come_one_by_one_and_are_remembered(desk: Practice) -> None:
    """The second call says that there are no more; a read-only folder still shows the first."""
    first = type_course("hint", "01.1", cwd=desk.folder)
    second = type_course("hint", "01.1", "--more", cwd=desk.folder)
    assert (first.status, first.out) == (0, "hint 1/2: A Counter counts.\n")
    assert second.out.splitlines() == ["hint 1/2: A Counter counts.",
                                       "hint 2/2: Lower the text first."]
    assert "last hint" in type_course("hint", "01.1", cwd=desk.folder).out


def test_faults_are_killed_and_nothing_is_edited(desk: Practice, solve: Solve) -> None:
    """course.fault/1 for one lab; the folder's bytes are the same afterwards."""
    solve(desk)
    before = {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()}
    typed = type_course("fault", "02.1", "--json", cwd=desk.folder)
    report = typed.json
    assert typed.status == 0 and report["schema"] == "course.fault/1"
    assert [fault["verdict"] for fault in report["faults"]] == ["killed", "killed"]
    assert report["before"]["status"] == report["after"]["status"] == "green"
    after = {path: path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()}
    assert after == before


def test_one_fault_by_its_id_and_all_without_a_word(desk: Practice, solve: Solve) -> None:
    """An id runs one experiment; nothing runs every lab's."""
    solve(desk)
    one = type_course("fault", "no-numbers", "--json", cwd=desk.folder).json
    assert [fault["id"] for fault in one["faults"]] == ["no-numbers"]
    every = type_course("fault", "--json", cwd=desk.folder)
    assert every.status == 0 and len(every.json["labs"]) == 3


def test_a_fault_experiment_needs_a_green_lab(desk: Practice) -> None:
    """On red code nothing is injected; exit code 1."""
    typed = type_course("fault", "02.1", "--json", cwd=desk.folder)
    assert typed.status == 1 and typed.json["faults"] == [] and typed.json["after"] is None


def test_the_record_holds_only_when_all_of_it_does(tmp_path: Path, solve: Solve) -> None:
    """Every line comes from a run; on an untouched scaffold it does not hold."""
    assert type_course("--root", TINY, "practice", "02", "desk", cwd=tmp_path).status == 0
    folder = tmp_path / "desk"
    assert type_course("record", cwd=folder).status == 1
    report = (TINY / "solutions/02-report/src/tally/report.py").read_bytes()
    (folder / "src/tally/report.py").write_bytes(report)
    typed = type_course("record", "-o", "record.txt", cwd=folder)
    assert typed.status == 0
    lines = [line for line in (folder / "record.txt").read_text("utf-8").splitlines()
             if not line.startswith("#")]
    assert lines == [
        "fresh build: pass",
        "first red: Lab 02.1 0/2, exact scaffold error",
        "Lab 02.1: 2/2", "Lab 02.2: 1/1", "Lab 02.3: 1/1",
        "fault injected: Lab 02.3 fails at the listeners",
        "fault restored: Lab 02.3 1/1",
        "chapter total: 4/4",
        "through Chapter 02: all pass",
    ]


def test_checkpoint_prints_digest_and_contents(tmp_path: Path) -> None:
    """Without DIR nothing is written; with DIR the tree; --run its tests."""
    typed = type_course("--root", TINY, "checkpoint", "01", cwd=tmp_path)
    assert typed.status == 0 and "src/tally/counter.py" in typed.out
    lock = (TINY / "checkpoints/checkpoints.lock").read_text("utf-8")
    assert typed.out.split()[1] in lock
    typed = type_course("--root", TINY, "checkpoint", "02", "tree", "--run", cwd=tmp_path)
    assert typed.status == 0 and (tmp_path / "tree/src/tally/report.py").is_file()
    assert "6/6" in typed.out
    assert type_course("--root", TINY, "checkpoint", "02", "tree", cwd=tmp_path).status == 2


def test_json_is_utf8_whatever_the_locale(desk: Practice) -> None:
    """Under LC_ALL=C too, with nothing else on stdout."""
    typed = type_course("test", "--json", cwd=desk.folder, LC_ALL="C", PYTHONUTF8="0")
    assert "尚未实现" in json.dumps(json.loads(typed.out), ensure_ascii=False)
    shown = type_course("test", cwd=desk.folder, LC_ALL="C", PYTHONUTF8="0")
    assert shown.status == 1 and "Traceback" not in shown.err


def test_control_characters_of_a_message_do_not_reach_the_terminal(
    desk: Practice, solve: Solve
) -> None:
    """Escapes, bidi marks and carriage returns are shown as text."""
    path = solve(desk).folder / "src/tally/report.py"
    path.write_text(path.read_text("utf-8").replace(
        "        ranked =",
        "        raise ValueError('\\x1b[2J\\r\\u202e\\ud800 0/2')\n        ranked ="))
    typed = type_course("test", "02.1", cwd=desk.folder)
    assert typed.status == 1 and "\\x1b[2J\\x0d\\u202e\\ud800" in typed.out
    assert not {"\x1b", "\r", "\u202e"} & set(typed.out)


def test_help_of_every_command_has_a_sentence(tmp_path: Path) -> None:
    """Exit code 0 and what it does."""
    from course.cli import cli

    for name, command in cli.commands.items():
        assert command.help and command.help.strip().split("\n")[0].endswith("."), name


def test_a_closed_pipe_is_no_error(desk: Practice) -> None:
    """`course list | head -1` ends quietly."""
    import subprocess
    import sys

    from tests.conftest import REPOSITORY

    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m course list | true"], cwd=desk.folder,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
