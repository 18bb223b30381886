"""The workspace: what can be read, and a program that really runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import workspace
from harness.workspace import MAX_FILE_BYTES, read_file, run_python, run_report


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", "link.txt", ".", "nothing", "a\0b"])
def test_only_regular_files_inside_can_be_read(tmp_path: Path, path: str) -> None:
    """What is outside, a folder or not there is a ValueError, links resolved."""
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / "out.txt").write_text("SECRET")
    (inside / "link.txt").symlink_to(tmp_path / "out.txt")
    with pytest.raises(ValueError):
        read_file(inside, path)


def test_file_size_has_a_limit_in_bytes(tmp_path: Path) -> None:
    """MAX_FILE_BYTES come back whole, one more is refused, and so is what is no UTF-8."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * MAX_FILE_BYTES)
    assert len(read_file(tmp_path, "a.txt")) == MAX_FILE_BYTES
    for raw in (b"x" * (MAX_FILE_BYTES + 1), b"\xff"):
        path.write_bytes(raw)
        with pytest.raises(ValueError):
            read_file(tmp_path, "a.txt")


def test_program_runs_in_a_child_and_tells_all(tmp_path: Path) -> None:
    """Exit code, whole output and errors come back, and the program's folder is the workspace."""
    (tmp_path / "p.py").write_text(
        "import sys\nopen('ran', 'w').close()\nprint('输出')\nprint('bad', file=sys.stderr)\n"
        "sys.exit(3)\n",
        encoding="utf-8",
    )
    assert run_python(tmp_path, "p.py") == run_report(3, "输出\n", "bad\n")
    assert (tmp_path / "ran").exists()


def test_program_that_does_not_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After RUN_SECONDS the child is killed and the model gets an error it can read."""
    monkeypatch.setattr(workspace, "RUN_SECONDS", 0.2)
    (tmp_path / "p.py").write_text("while True: pass\n")
    with pytest.raises(ValueError):
        run_python(tmp_path, "p.py")
