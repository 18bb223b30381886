"""The probes of chapter 12: right work agrees whatever its structure, wrong work does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chapter12.wrong import WRONG, Wrong
from tests.conftest import REPOSITORY
from tests.probe_desk import ProbeDesk

MODULE = "src/pi_course/resources.py"
RIGHT = sorted((REPOSITORY / "tests/chapter12/right").glob("impl_*.py"))


@pytest.fixture(scope="module")
def desk() -> ProbeDesk:
    return ProbeDesk("12")


def test_there_are_enough_and_each_depends_on_the_salt(desk: ProbeDesk) -> None:
    """Forty over five labs at least; no observation is the same under two salts."""
    assert len(desk.probes.probes) >= 40
    assert all(len(desk.probes.of(lab.id)) >= 7 for lab in desk.chapter.labs)
    assert len(desk.observed) == 2 * len(desk.probes.probes)
    assert desk.alike() == []


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_implementation_agrees(path: Path, desk: ProbeDesk) -> None:
    """With every answer of the reference, under both salts."""
    assert desk.disagreeing({MODULE: path.read_text("utf-8")}) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_implementation_disagrees(wrong: Wrong, desk: ProbeDesk) -> None:
    """One plausible slip in the reference: a probe of the lab whose test is red sees it."""
    reference = desk.source(MODULE)
    assert reference.count(wrong.old) == 1
    lab = next(lab for lab in desk.chapter.labs if set(wrong.fails) & set(lab.cases))
    assert desk.disagreeing({MODULE: reference.replace(wrong.old, wrong.new)}, lab.id)
