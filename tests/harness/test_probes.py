"""The probes of chapter s07: right work agrees whatever its structure, wrong work does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from course.children import Children
from tests.conftest import REPOSITORY
from tests.harness.wrong import ASSEMBLY, SKILLS, WRONG, Cheat, Slip
from tests.probe_desk import ProbeDesk, PublicDesk

RIGHT = sorted((REPOSITORY / "tests/harness/right").glob("impl_*"))


@pytest.fixture(scope="module")
def desk() -> ProbeDesk:
    return ProbeDesk("s07")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicDesk]:
    with Children(warm=True) as children:
        yield PublicDesk("s07", tmp_path_factory.mktemp("s07"), children)


def _sources(folder: Path) -> dict[str, str]:
    return {file: (folder / Path(file).name).read_text("utf-8") for file in (SKILLS, ASSEMBLY)}


def _wrong(wrong: Slip | Cheat, desk: ProbeDesk) -> dict[str, str]:
    source = desk.source(wrong.file)
    if isinstance(wrong, Cheat):
        return {wrong.file: source + wrong.code}
    assert source.count(wrong.old) == 1
    return {wrong.file: source.replace(wrong.old, wrong.new)}


def test_there_are_enough_and_each_depends_on_the_salt(desk: ProbeDesk) -> None:
    """Six a lab at least; all are answered, and no observation is the same under two salts."""
    assert all(len(desk.probes.of(lab.id)) >= 6 for lab in desk.chapter.labs)
    assert len(desk.observed) == 2 * len(desk.probes.probes)
    assert desk.alike() == []


def test_there_are_right_implementations() -> None:
    """Four, of different structure."""
    assert len(RIGHT) == 4


@pytest.mark.parametrize("folder", RIGHT, ids=lambda folder: folder.name)
def test_a_right_implementation_agrees(folder: Path, desk: ProbeDesk, public: PublicDesk) -> None:
    """With every answer of the reference under both salts, and it passes the public tests."""
    assert desk.disagreeing(_sources(folder)) == []
    assert public.red(_sources(folder)) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_implementation_disagrees(
    wrong: Slip | Cheat, desk: ProbeDesk, public: PublicDesk
) -> None:
    """A probe of its lab sees it, whether or not the public tests do."""
    sources = _wrong(wrong, desk)
    assert desk.disagreeing(sources, wrong.lab)
    assert (public.red(sources, wrong.lab) == []) is wrong.green
