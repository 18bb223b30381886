"""`course doctor`: what is here, what is missing, and what to type."""

from __future__ import annotations

from pathlib import Path

from course.doctor import examine
from course.practice import Practice
from tests.conftest import type_course


def test_a_changed_practice_is_named_with_its_remedy(desk: Practice) -> None:
    """The file, and `course restore`."""
    (desk.folder / "tests/test_02_1_top.py").unlink()
    check = next(check for check in examine(desk.folder) if check.name == "practice")
    assert not check.ok and "test_02_1_top.py" in check.found
    assert check.next_command == "course restore"


def test_without_bubblewrap_it_says_how_to_install_it(desk: Practice, tmp_path: Path) -> None:
    """Exit code 4; learners' commands need none of it."""
    (tmp_path / "bin").mkdir()
    typed = type_course("doctor", cwd=desk.folder, PATH=str(tmp_path / "bin"))
    assert typed.status == 4 and "apt-get install bubblewrap" in typed.out
    assert "ok       practice" in typed.out
