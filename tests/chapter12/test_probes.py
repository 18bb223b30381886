"""The probes of chapter 12: right work agrees whatever its structure, wrong work does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from course.answers import Answers, Key
from course.box import Box
from course.manifest import load_course
from course.probes import agreed, ask, asked, load_probes
from course.snapshot import checkpoint
from tests.chapter12.wrong import WRONG, Wrong
from tests.conftest import REPOSITORY

MODULE = "src/pi_course/resources.py"
RIGHT = sorted((REPOSITORY / "tests/chapter12/right").glob("impl_*.py"))


class Desk:
    """The checkpoint of chapter 12 and its probes; one implementation after another goes in."""

    def __init__(self) -> None:
        course = load_course(REPOSITORY)
        self.chapter = course.chapter("12")
        probes = load_probes(course, self.chapter)
        assert probes is not None
        self.probes = probes
        tree = checkpoint(course, "12")
        self.files = {path: file.data for path, file in tree.items()}
        self.reference = self.files[MODULE].decode()
        self.observed: Mapping[Key, str] = self.ask(self.reference).observed

    def ask(self, source: str, lab: str | None = None) -> Answers:
        question = asked(self.chapter, self.probes, ("one", "two"), 60.0, lab=lab)
        return ask(Box(), self.files | {MODULE: source.encode()}, question)

    def disagreeing(self, source: str, lab: str | None = None) -> list[str]:
        answers = self.ask(source, lab)
        probes = self.probes.of(lab) if lab else self.probes.probes
        return [probe.name for probe in probes if not agreed(probe, self.observed, answers)]


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk()


def test_there_are_enough_and_each_depends_on_the_salt(desk: Desk) -> None:
    """Forty over five labs at least; no observation is the same under two salts."""
    assert len(desk.probes.probes) >= 40
    assert all(len(desk.probes.of(lab.id)) >= 7 for lab in desk.chapter.labs)
    assert len(desk.observed) == 2 * len(desk.probes.probes)
    assert not [probe.name for probe in desk.probes.probes
                if desk.observed[probe.name, 0] == desk.observed[probe.name, 1]]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_implementation_agrees(path: Path, desk: Desk) -> None:
    """With every answer of the reference, under both salts."""
    assert desk.disagreeing(path.read_text("utf-8")) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_implementation_disagrees(wrong: Wrong, desk: Desk) -> None:
    """One plausible slip in the reference: a probe of the lab whose test is red sees it."""
    assert desk.reference.count(wrong.old) == 1
    lab = next(lab for lab in desk.chapter.labs if set(wrong.fails) & set(lab.cases))
    assert desk.disagreeing(desk.reference.replace(wrong.old, wrong.new), lab.id)
