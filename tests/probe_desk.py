"""A chapter's checkpoint with its probes or its public tests, for one submission after another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from course.answers import Answers, Key
from course.box import Box
from course.checkpoints import with_tests
from course.children import Children
from course.labs import run_labs
from course.manifest import load_course
from course.probes import agreed, ask, asked, load_probes
from course.snapshot import checkpoint, write_tree
from tests.conftest import REPOSITORY

SALTS = ("one", "two")


class ProbeDesk:
    """What the reference of a chapter answers, and who does not agree with it."""

    def __init__(self, chapter_id: str) -> None:
        course = load_course(REPOSITORY)
        self.chapter = course.chapter(chapter_id)
        probes = load_probes(course, self.chapter)
        assert probes is not None
        self.probes = probes
        self.files = {path: file.data for path, file in checkpoint(course, chapter_id).items()}
        self.observed: Mapping[Key, str] = self.ask({}).observed

    def source(self, path: str) -> str:
        """The reference's text of one file."""
        return self.files[path].decode()

    def ask(self, sources: Mapping[str, str], lab: str | None = None) -> Answers:
        """What the checkpoint answers with these files in it."""
        question = asked(self.chapter, self.probes, SALTS, 60.0, lab=lab)
        encoded = {path: source.encode() for path, source in sources.items()}
        return ask(Box(), self.files | encoded, question)

    def disagreeing(self, sources: Mapping[str, str], lab: str | None = None) -> list[str]:
        """The names of the probes that these files answer in another way than the reference."""
        answers = self.ask(sources, lab)
        probes = self.probes.of(lab) if lab else self.probes.probes
        return [probe.name for probe in probes if not agreed(probe, self.observed, answers)]

    def alike(self) -> list[str]:
        """The names of the probes whose observations are the same under both salts."""
        return [probe.name for probe in self.probes.probes
                if self.observed[probe.name, 0] == self.observed[probe.name, 1]]


class PublicDesk:
    """A chapter's checkpoint with its public tests, for one submission after another."""

    def __init__(self, chapter_id: str, folder: Path, children: Children) -> None:
        course = load_course(REPOSITORY)
        self.chapter = course.chapter(chapter_id)
        self.folder, self.children = folder, children
        self.tree = with_tests(course, (self.chapter,), checkpoint(course, chapter_id))

    def red(self, sources: Mapping[str, str], lab_id: str | None = None) -> list[str]:
        """The names of the tests that do not pass with these files in the checkpoint."""
        write_tree(self.tree, self.folder)
        for path, source in sources.items():
            (self.folder / path).write_text(source, "utf-8")
        labs = [lab for lab in self.chapter.labs if lab_id in (None, lab.id)]
        result = run_labs(self.folder, [self.chapter], labs, children=self.children)
        return [case.name for lab in result.labs for case in lab.cases if case.outcome != "passed"]
