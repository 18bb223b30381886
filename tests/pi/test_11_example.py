"""The example: the whole agent in real processes, killed in the middle and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pi_course.history import repair_history
from pi_course.messages import ToolResultMessage, calls_of, text_of
from pi_course.sessions import active_messages, recover

from tests.pi.arbitrary import is_legal


def run_example(fold: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """One run of the example, as a person would start it."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(fold / "examples/run_agent.py"), "--home", str(home),
         *options],
        capture_output=True, encoding="utf-8", timeout=60, check=False, cwd=home.parent,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def test_the_agent_killed_in_the_middle_is_resumed_and_nothing_is_done_twice(
    fold: Path, tmp_path: Path
) -> None:
    """Killed while it writes a result, started again: the call has one result, and it finishes."""
    home = tmp_path / "home"
    killed = run_example(fold, home, "--crash-after-tool")
    assert killed.returncode == 1, killed.stderr
    assert (home / "files/hello.txt").read_text() == "hello\n"
    torn = (home / "session.jsonl").read_bytes()
    assert not torn.endswith(b"\n")
    written = (home / "files/hello.txt").stat().st_mtime_ns

    resumed = run_example(fold, home)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert "40 torn bytes" in resumed.stdout
    assert "resuming" in resumed.stdout
    assert "end: final" in resumed.stdout
    assert (home / "files/hello.txt").stat().st_mtime_ns == written

    data = (home / "session.jsonl").read_bytes()
    head = torn[: torn.rindex(b"\n") + 1]
    assert data.startswith(head)
    assert (home / "session.jsonl.torn-1").read_bytes() == torn[len(head) :]
    report = recover(home / "session.jsonl")
    assert (report.quarantined, report.torn_tail) == ((), b"")
    shown = repair_history(active_messages(report.kept)).messages
    assert is_legal(shown)
    wanted = [call.id for message in shown for call in calls_of(message)]
    assert wanted == ["call-1", "call-2"]
    assert [m.call_id for m in shown if isinstance(m, ToolResultMessage)] == wanted


def test_the_agent_runs_through_and_a_second_run_is_a_new_task(fold: Path, tmp_path: Path) -> None:
    """Nobody kills it: four messages a run, each run on the same session."""
    home = tmp_path / "家"
    for run in (1, 2):
        done = run_example(fold, home)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert "end: final" in done.stdout
        messages = active_messages(recover(home / "session.jsonl").kept)
        assert [message.role for message in messages] == [
            "user", "assistant", "tool_result", "assistant",
        ] * run  # fmt: skip
        assert is_legal(messages)
        assert text_of(messages[-1]) == "hello.txt is there."
