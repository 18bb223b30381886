"""course.toml and chapter.toml read into values. The only reader of a course's TOML.

Reading is strict: an unknown key, an unknown or repeated id, a count that the test file does
not have, a hole that the solution does not define and an empty text are errors that name the
file and the key (rules: docs/course.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomli

from course import rules
from course.errors import CourseBroken, UsageProblem
from course.outline import Chapter, Fault, Lab, Replay, Text, Track, chapter_id_of

_DEFINITION = re.compile(r"^(?=(?: {4})?(class|def) )( {4})?(?:class|def) (\w+)", re.MULTILINE)


class _ChapterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Text
    submit: tuple[str, ...]
    api: tuple[str, ...]
    lab: tuple[Lab, ...]
    fault: tuple[Fault, ...] = ()
    replay: tuple[Replay, ...] = ()
    extras: tuple[str, ...] = ()  # files of the lab folder that a practice gets at its top
    given: tuple[str, ...] = ()  # files of the layer that a learner gets and does not write
    packages: tuple[str, ...] = ()  # what pip has to install for the chapter's code


class _CourseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Text
    track: tuple[Track, ...]


class Course(msgspec.Struct, frozen=True):
    """A course root and its tracks. Chapters are read when they are asked for."""

    root: Path
    title: Text
    tracks: tuple[Track, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All chapter folder names, in course order."""
        return tuple(name for track in self.tracks for name in track.chapters)

    def name_of(self, chapter_id: str) -> str:
        for name in self.names:
            if chapter_id in (name, chapter_id_of(name)):
                return name
        known = ", ".join(chapter_id_of(name) for name in self.names)
        raise UsageProblem(f"no chapter {chapter_id!r} in this course (it has {known})",
                           "course list")

    def chapter(self, chapter_id: str) -> Chapter:
        return load_chapter(self, self.name_of(chapter_id))

    def chapters(self) -> Iterator[Chapter]:
        return (load_chapter(self, name) for name in self.names)

    def line_to(self, chapter_id: str) -> tuple[str, ...]:
        """Folder names of all chapters up to and including this one, in fold order."""
        name = self.name_of(chapter_id)
        track = self.track_of(name)
        before = self.line_to(track.after) if track.after else ()
        return (*before, *track.chapters[: track.chapters.index(name) + 1])

    def base_of(self, chapter_id: str) -> str:
        """The base tree's folder in checkpoints/ that this chapter's line starts from."""
        track = self.track_of(self.name_of(chapter_id))
        return self.base_of(track.after) if track.after else track.base

    def track_of(self, name: str) -> Track:
        return next(track for track in self.tracks if name in track.chapters)


def load_course(root: Path) -> Course:
    """The course at `root`, or CourseBroken naming labs/course.toml and what is wrong in it."""
    path = root / "labs" / "course.toml"
    parsed = _read(path, _CourseFile)
    course = Course(root, parsed.title, parsed.track)
    rules.check_course(root, course.title, course.tracks, path)
    return course


def load_chapter(course: Course, name: str) -> Chapter:
    """The chapter in labs/<name>, fully checked against its test files and its solution."""
    folder = course.root / "labs" / name
    path = folder / "chapter.toml"
    parsed = _read(path, _ChapterFile)
    labs = tuple(
        msgspec.structs.replace(lab, cases=_cases(folder / lab.tests, path), points=lab.points
                                or float(lab.count))
        for lab in parsed.lab
    )
    chapter = Chapter(
        chapter_id_of(name), name, course.track_of(name).id, parsed.title, parsed.submit,
        parsed.api, labs, parsed.fault, parsed.replay, parsed.extras,
        parsed.given, parsed.packages,
    )
    rules.check_chapter(chapter, path)
    rules.check_holes(chapter, course.root / "solutions" / name, path)
    return chapter


def cases_in(source: str) -> tuple[str, ...]:
    """Test ids in file order: `test_x` and `TestY::test_z`, as pytest names them.

    Read line by line, since this is done for every chapter of a practice: a test is a `def` at the
    start of a line or one step inside a class. What that gets wrong, the manifest's count shows.
    """
    names: list[str] = []
    owner = ""
    for kind, inner, name in _DEFINITION.findall(source):
        if kind == "class":
            owner = "" if inner else name
        elif name.startswith("test") and (not inner or owner.startswith("Test")):
            names.append(f"{owner}::{name}" if inner else name)
            owner = owner if inner else ""
    return tuple(names)


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        raw = tomli.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise CourseBroken(f"{path} is missing") from None
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise CourseBroken(f"{path} cannot be read: {error}") from None
    if any("cases" in lab for lab in raw.get("lab", []) if isinstance(lab, dict)):
        raise CourseBroken(f"{path}: key lab.cases is not for the manifest")
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise CourseBroken(f"{path}: {error}") from None


def _cases(tests: Path, manifest: Path) -> tuple[str, ...]:
    try:
        return cases_in(tests.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise CourseBroken(f"{manifest}: lab.tests names {tests.name}, which is missing") from None
    except UnicodeDecodeError as error:
        raise CourseBroken(f"{tests} is not UTF-8: {error}") from None
