"""Chapter 12 from outside: right work passes whatever its structure, wrong work fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from course.checkpoints import with_tests
from course.children import Children
from course.labs import run_labs
from course.manifest import Course, load_course
from course.outline import Chapter
from course.results import RunResult
from course.snapshot import checkpoint, write_tree
from tests.chapter12.wrong import WRONG, Wrong
from tests.conftest import REPOSITORY, type_course

MODULE = "src/pi_course/resources.py"
RIGHT = sorted((REPOSITORY / "tests/chapter12/right").glob("impl_*.py"))


class Bench:
    """The checkpoint of chapter 12 with its tests; one implementation after another goes in."""

    def __init__(self, course: Course, folder: Path, children: Children) -> None:
        self.chapter: Chapter = course.chapter("12")
        self.folder = folder
        self.children = children
        self.reference = (course.root / "solutions" / self.chapter.name / MODULE).read_text("utf-8")
        write_tree(with_tests(course, (self.chapter,), checkpoint(course, "12")), folder)

    def run(self, source: str, tests: tuple[str, ...] = ()) -> RunResult:
        (self.folder / MODULE).write_text(source, "utf-8")
        labs = [lab for lab in self.chapter.labs if not tests or set(tests) & set(lab.cases)]
        return run_labs(self.folder, [self.chapter], labs, children=self.children)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Children(warm=True) as children:
        yield Bench(load_course(REPOSITORY), tmp_path_factory.mktemp("twelve"), children)


def test_there_are_six_right_implementations() -> None:
    """Six, of different structure."""
    assert len(RIGHT) == 6


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_implementation_passes_all_twelve(path: Path, bench: Bench) -> None:
    """2/2, 3/3, 2/2, 2/2, 3/3."""
    result = bench.run(path.read_text("utf-8"))
    assert [(lab.passed, lab.total) for lab in result.labs] == [
        (2, 2), (3, 3), (2, 2), (2, 2), (3, 3)], result.first_red


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_implementation_fails_where_it_must(wrong: Wrong, bench: Bench) -> None:
    """One plausible slip in the reference: every test named for it is red."""
    assert bench.reference.count(wrong.old) == 1
    result = bench.run(bench.reference.replace(wrong.old, wrong.new), wrong.fails)
    red = {case.name for lab in result.labs for case in lab.cases if case.outcome != "passed"}
    assert set(wrong.fails) <= red


def test_a_fresh_practice_is_red_exactly_as_declared(tmp_path: Path) -> None:
    """0/2, both with the scaffold's error, exit code 1; only resources.py is to be written."""
    made = type_course("--root", REPOSITORY, "practice", "12", tmp_path / "desk", cwd=tmp_path)
    assert made.status == 0
    typed = type_course("test", "12.1", "--json", cwd=tmp_path / "desk")
    run = typed.json
    assert (typed.status, run["passed"], run["total"]) == (1, 0, 2)
    errors = [test["error"]["message"] for test in run["labs"][0]["tests"]]
    assert errors == ["Lab 12.1 resource catalog 尚未实现"] * 2
    assert type_course("build", cwd=tmp_path / "desk").status == 0
