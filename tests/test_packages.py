"""A chapter whose code needs a package that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.gradescope_zip import autograder
from course.manifest import load_course
from tests.conftest import type_course

NAME = "no-such-package-for-tests"


@pytest.fixture
def needing(own_tiny: Path) -> Path:
    """A course whose second chapter needs it."""
    manifest = own_tiny / "labs/02-report/chapter.toml"
    manifest.write_text(f'packages = ["{NAME}"]\n{manifest.read_text("utf-8")}', "utf-8")
    return own_tiny


@pytest.mark.parametrize("words", [
    ["practice", "02", "desk"], ["grade", "tiny", "--chapter", "02", "--out", "out"],
    ["checkpoint", "02", "desk", "--run"],
])
def test_what_would_run_it_says_what_to_install(
    words: list[str], needing: Path, tmp_path: Path
) -> None:
    """Exit code 4, the chapter, the package and the command; no folder is made by halves."""
    typed = type_course("--root", needing, *words, cwd=tmp_path)
    assert typed.status == 4
    assert f"chapter 02 needs {NAME}" in typed.err
    assert f"-m pip install {NAME}" in typed.err
    assert not (tmp_path / "desk" / ".course").exists() and not (tmp_path / "out").exists()


def test_a_practice_that_moved_says_so_too(needing: Path, tmp_path: Path) -> None:
    """Where the folder was made the package may have been; hints and restore need none."""
    made = type_course("--root", needing, "practice", "02", "desk", "--no-check", cwd=tmp_path)
    assert made.status == 0
    desk = tmp_path / "desk"
    for words in (["test"], ["test", "02.1"], ["build"], ["fault", "02.1"], ["record"]):
        typed = type_course(*words, cwd=desk)
        assert typed.status == 4 and f"-m pip install {NAME}" in typed.err, words
    for words in (["hint", "02.1"], ["restore"]):
        assert type_course(*words, cwd=desk).status == 0, words


def test_a_proof_names_it(needing: Path, tmp_path: Path) -> None:
    """The chapter does not hold; the other one does."""
    typed = type_course("--root", needing, "verify", cwd=tmp_path)
    assert typed.status == 1 and f"chapter 02 needs {NAME}" in typed.out
    assert "01-counter: " in typed.out


def test_an_autograder_installs_it(needing: Path) -> None:
    """Beside what the kit itself needs."""
    made = autograder(load_course(needing), "02")
    assert NAME in made["requirements.txt"].data.decode().splitlines()
