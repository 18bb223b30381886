"""The lesson's run as a person types it, and that its proof can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness import assembly, practice, skills, verify_practice
from harness.hooks import execute_with_hooks
from harness.script import script
from harness.scripted import scripted


def _typed(src: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=src.parent, capture_output=True, text=True,
        encoding="utf-8", check=False, timeout=60,
        env={"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"} | environment,
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--decision allow", ["final", "parent 5, child 3", "yes"]),
        ("--decision deny", ["final", "parent 5, child 3", "no"]),
        ("", ["final", "parent 5, child 3", "no"]),
        ("--decision allow --skill missing", ["final", "parent 2, child 0", "no"]),
        ("--decision allow --skill sql-style", ["final", "parent 5, child 3", "yes"]),
        ("--decision allow --max-calls 1", ["call_limit", "parent 1, child 0", "no"]),
        ("--decision allow --max-calls 3", ["call_limit", "parent 3, child 3", "no"]),
        ("--decision allow --max-calls 4", ["call_limit", "parent 4, child 3", "yes"]),
    ],
)
def test_each_command_says_what_happened(src: Path, words: str, shown: list[str]) -> None:
    """stop, model calls and whether the program really ran, for each way to call it."""
    done = _typed(src, "harness.practice", *words.split())
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    assert [found["stop"], found["model calls"], found["program ran"]] == shown
    assert found["answer"]


def test_shipped_files_are_left_as_they_are(src: Path) -> None:
    """A run works on a copy: the marker never appears among the shipped files."""
    workspace = practice.SHIPPED / "workspace"
    before = {path.name: path.read_bytes() for path in workspace.iterdir()}
    practice.run_practice(scripted(script()), decision="allow")
    assert {path.name: path.read_bytes() for path in workspace.iterdir()} == before


def test_live_without_a_key_is_refused(src: Path) -> None:
    """--live without the usual variable says so, exits 2, and sends nothing."""
    done = _typed(src, "harness.practice", "--live")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ANTHROPIC_API_KEY" in done.stderr


@pytest.mark.parametrize("decision", ["deny", "Allow", "yes", ""])
def test_only_allow_allows(decision: str) -> None:
    """No other word lets the program run."""
    assert not practice.run_practice(scripted(script()), decision=decision).program_ran


def test_shipped_skills_are_the_two(src: Path) -> None:
    """output-check and sql-style pass the scan, and both bodies load."""
    registry = skills.scan_skills(practice.SHIPPED / "skills")
    assert list(registry) == ["output-check", "sql-style"]
    assert registry["output-check"]["description"] == (
        "核对Python程序输出与expected.txt，区分推导、运行和未执行。")
    assert all(skills.load_skill(name, registry) for name in registry)


def test_proof_holds(src: Path) -> None:
    """python -m harness.verify_practice ends with 0 and one ok line a claim."""
    done = _typed(src, "harness.verify_practice")
    *claims, total = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert claims and all(line.startswith("ok ") for line in claims)
    assert total == f"{len(claims)} of {len(claims)} claims hold"


def test_proof_can_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a gate that asks nobody and a load that checks no path, claims fail and it says 1."""
    monkeypatch.setattr(assembly, "execute_with_permission",
                        lambda call, tools, approve, hooks: execute_with_hooks(call, tools, hooks))
    monkeypatch.setattr(verify_practice, "load_skill",
                        lambda name, registry: Path(registry[name]["path"]).read_text("utf-8"))
    assert verify_practice.main() == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert any("no marker" in line for line in failed)
    assert any("ignore permission" in line for line in failed)
    assert any("link to another skill" in line for line in failed)
