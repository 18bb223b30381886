"""The child: what it knows, what it can do, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.hooks import Hooks
from harness.messages import Block, Message
from harness.subtask import ask_child
from harness.tools import Tools


def _read(path: str) -> Block:
    return {"type": "tool_use", "id": "id-1", "name": "read_file", "input": {"path": path}}


def _child(
    workspace: Path, replies: list[list[Block]], **options: Any
) -> tuple[str, list[list[Message]], list[Tools]]:
    turns = iter(replies)
    histories: list[list[Message]] = []
    tables: list[Tools] = []

    def ask(history: list[Message], tools: Tools) -> list[Block]:
        histories.append(list(history))
        tables.append(tools)
        return next(turns)

    options.setdefault("hooks", Hooks())
    return ask_child("TASK", ask=ask, workspace=workspace, **options), histories, tables


REPORT: list[Block] = [{"type": "text", "text": "REPORT"}]


def test_child_starts_from_its_task_and_can_only_read(tmp_path: Path) -> None:
    """The first request is the task alone, the table is read_file, the answer is the report."""
    (tmp_path / "a.txt").write_text("CONTENT")
    answer, histories, tables = _child(tmp_path, [[_read("a.txt")], REPORT])
    assert answer == "REPORT"
    assert histories[0] == [{"role": "user", "content": "TASK"}]
    assert [list(table) for table in tables] == [["read_file"]] * 2
    assert histories[1][-1]["content"][0]["content"] == "CONTENT"


def test_other_tools_do_not_exist_for_it(tmp_path: Path) -> None:
    """A child that asks to run a program gets an error result and nothing runs."""
    (tmp_path / "main.py").write_text("open('ran', 'w').close()\n")
    call = {**_read("main.py"), "name": "run_python"}
    _, histories, _ = _child(tmp_path, [[call], REPORT])
    assert histories[1][-1]["content"][0]["is_error"] is True
    assert not (tmp_path / "ran").exists()


def test_hooks_watch_the_child_too(tmp_path: Path) -> None:
    """What a before hook blocks for the parent is not open through a child."""
    (tmp_path / "a.txt").write_text("CONTENT")
    hooks = Hooks(before=(lambda call: "no",))
    _, histories, _ = _child(tmp_path, [[_read("a.txt")], REPORT], hooks=hooks)
    assert "CONTENT" not in str(histories)


def test_child_without_a_report_is_an_error(tmp_path: Path) -> None:
    """A child that has used its budget up raises ValueError, which the dispatcher answers."""
    with pytest.raises(ValueError):
        _child(tmp_path, [[_read("a.txt")]] * 2, max_calls=2)
