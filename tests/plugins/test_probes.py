"""The probes of chapter 32: right work agrees whatever its structure, wrong work does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.children import Children
from tests.conftest import REPOSITORY
from tests.plugins.wrong import WRONG, Wrong
from tests.probe_desk import ProbeDesk, PublicDesk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need POSIX")

RIGHT = sorted((REPOSITORY / "tests/plugins/right").glob("by_*"))


@pytest.fixture(scope="module")
def desk() -> ProbeDesk:
    return ProbeDesk("32")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicDesk]:
    with Children(warm=True) as children:
        yield PublicDesk("32", tmp_path_factory.mktemp("plugins"), children)


def _path(module: str) -> str:
    return f"src/pi_course/{module}.py"


def _sources(folder: Path) -> dict[str, str]:
    return {_path(file.stem): file.read_text("utf-8") for file in folder.glob("*.py")}


def _wrong(wrong: Wrong, desk: ProbeDesk) -> dict[str, str]:
    source = desk.source(_path(wrong.module))
    if not wrong.old:
        return {_path(wrong.module): source + wrong.new}
    assert source.count(wrong.old) == 1
    return {_path(wrong.module): source.replace(wrong.old, wrong.new)}


def test_there_are_enough_and_each_depends_on_the_salt(desk: ProbeDesk) -> None:
    """Six a lab at least; all are answered, and no observation is the same under two salts."""
    assert all(len(desk.probes.of(lab.id)) >= 6 for lab in desk.chapter.labs)
    assert len(desk.observed) == 2 * len(desk.probes.probes)
    assert desk.alike() == []


def test_every_lab_is_built_in_another_way(desk: ProbeDesk) -> None:
    """Each module that learners write differs from the reference in some right implementation."""
    different = {path for folder in RIGHT for path, source in _sources(folder).items()
                 if source != desk.source(path)}
    assert different == set(desk.chapter.submit)


@pytest.mark.parametrize("folder", RIGHT, ids=lambda folder: folder.name)
def test_a_right_implementation_agrees(folder: Path, desk: ProbeDesk, public: PublicDesk) -> None:
    """With every answer of the reference under both salts, and it passes the public tests."""
    assert desk.disagreeing(_sources(folder)) == []
    assert public.red(_sources(folder)) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_implementation_disagrees(
    wrong: Wrong, desk: ProbeDesk, public: PublicDesk
) -> None:
    """A probe of its lab sees it, whether or not the public tests do."""
    sources = _wrong(wrong, desk)
    assert desk.disagreeing(sources, wrong.lab)
    assert (public.red(sources, wrong.lab) == []) is wrong.green
