"""course.toml and chapter.toml as frozen values. The only reader of a course's TOML.

Reading is strict: an unknown key, an unknown or repeated id, a count that the test file does
not have, a hole that the solution does not define and an empty text are errors that name the
file and the key (rules: docs/formats.md).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tomli

from course.errors import CourseBroken, UsageProblem

_DEFINITION = re.compile(r"^(?=(?: {4})?(class|def) )( {4})?(?:class|def) (\w+)", re.MULTILINE)
_ANY_DEFINITION = re.compile(
    r"^(?=(?: {4})?(?:async )?(class|def) )( {4})?(?:async )?(?:class|def) (\w+)", re.MULTILINE
)


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text in both languages of the course."""

    en: str
    zh: str

    def in_language(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one public test observes, and the public name to look at when it is red."""

    en: str
    look_at: str
    zh: str = ""

    def in_language(self, lang: str) -> str:
        return self.zh if lang == "zh" and self.zh else self.en


class Lab(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One lab: one test file. `cases` (test ids in file order) is read from that file."""

    id: str
    title: Text
    tests: str
    count: int
    first_red: str
    holes: tuple[str, ...]
    hints: tuple[Text, ...]
    observes: dict[str, Observation]
    needs: tuple[str, ...] = ()
    points: float = 0.0
    before: str = ""
    timeout_s: float = 10.0
    cases: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The test file's path inside a practice folder."""
        return f"tests/{self.tests}"

    @property
    def node_ids(self) -> tuple[str, ...]:
        return tuple(f"{self.file}::{case}" for case in self.cases)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault: `function` in faults.py wraps the public name `seam` ("module:qualname")."""

    id: str
    lab: str
    seam: str
    breaks: Text
    killed_by: tuple[str, ...]
    record: Text | None = None  # marks the fault of the acceptance record, in its words

    @property
    def function(self) -> str:
        return self.id.replace("-", "_")


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function that can be shown step by step."""

    id: str
    function: str
    scenarios: str


class _ChapterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Text
    submit: tuple[str, ...]
    api: tuple[str, ...]
    lab: tuple[Lab, ...]
    fault: tuple[Fault, ...] = ()
    replay: tuple[Replay, ...] = ()
    extras: tuple[str, ...] = ()  # files of the lab folder that a practice gets at its top
    given: tuple[str, ...] = ()  # files of the layer that a learner gets and does not write


class Chapter(msgspec.Struct, frozen=True):
    """One chapter. `name` is its folder in labs, solutions and starters; `id` stands before "-"."""

    id: str
    name: str
    track: str
    title: Text
    submit: tuple[str, ...]
    api: tuple[str, ...]
    labs: tuple[Lab, ...]
    faults: tuple[Fault, ...] = ()
    replays: tuple[Replay, ...] = ()
    extras: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(lab.count for lab in self.labs)

    def lab(self, lab_id: str) -> Lab:
        for lab in self.labs:
            if lab.id == lab_id:
                return lab
        known = ", ".join(lab.id for lab in self.labs)
        raise UsageProblem(f"chapter {self.id} has no lab {lab_id!r} (it has {known})")

    def faults_of(self, lab_id: str) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.lab == lab_id)

    @property
    def holes(self) -> dict[str, str]:
        """Every hole of the chapter ("module:qualname") with the first red it raises."""
        return {hole: lab.first_red for lab in self.labs for hole in lab.holes}


class Track(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of chapters on a base tree, or continuing `after` a chapter of another track."""

    id: str
    title: Text
    chapters: tuple[str, ...]
    base: str = ""
    after: str = ""


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


def chapter_id_of(name: str) -> str:
    """`12-resources-and-extensions` → `12`."""
    return name.partition("-")[0]


def load_course(root: Path) -> Course:
    """The course at `root`, or CourseBroken naming labs/course.toml and what is wrong in it."""
    path = root / "labs" / "course.toml"
    parsed = _read(path, _CourseFile)
    course = Course(root, parsed.title, parsed.track)
    _check_course(course, path)
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
        parsed.given,
    )
    _check_chapter(chapter, path)
    _check_holes(chapter, course.root / "solutions" / name, path)
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


def module_path(module: str) -> str:
    """`pi_course.resources` → `src/pi_course/resources.py`."""
    return f"src/{module.replace('.', '/')}.py"


def holes_in(chapter: Chapter, path: str) -> dict[str, str]:
    """The holes of one file of the layer: qualname → first red."""
    parts = (hole.partition(":") for hole in chapter.holes)
    return {name: chapter.holes[f"{module}:{name}"] for module, _, name in parts
            if module_path(module) == path}


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


def _check_course(course: Course, path: Path) -> None:
    _unique(path, "track.id", (track.id for track in course.tracks))
    _unique(path, "chapter", course.names)
    _unique(path, "chapter id", map(chapter_id_of, course.names))
    seen: set[str] = set()
    for track in course.tracks:
        if bool(track.base) == bool(track.after):
            raise CourseBroken(f"{path}: track {track.id} needs exactly one of base and after")
        if track.after and track.after not in seen:
            raise CourseBroken(f"{path}: track.after {track.after!r} is no chapter above it")
        if track.base and not (course.root / "checkpoints" / track.base).is_dir():
            raise CourseBroken(f"{path}: track.base {track.base!r} is no folder in checkpoints/")
        if not track.chapters:
            raise CourseBroken(f"{path}: track {track.id} has no chapters")
        seen |= {chapter_id_of(name) for name in track.chapters} | set(track.chapters)
    _texts(path, [("title", course.title), *(("track.title", t.title) for t in course.tracks)])


def _check_chapter(chapter: Chapter, path: Path) -> None:
    _unique(path, "lab.id", (lab.id for lab in chapter.labs))
    _unique(path, "lab.tests", (lab.tests for lab in chapter.labs))
    _unique(path, "fault.id", (fault.id for fault in chapter.faults))
    _unique(path, "hole", (hole for lab in chapter.labs for hole in lab.holes))
    _texts(path, [("title", chapter.title)])
    if not chapter.labs or not chapter.submit or not chapter.api:
        raise CourseBroken(f"{path}: lab, submit and api must not be empty")
    for lab in chapter.labs:
        _check_lab(chapter, lab, path)
    for fault in chapter.faults:
        _check_fault(chapter, fault, path)


def _check_lab(chapter: Chapter, lab: Lab, path: Path) -> None:
    where = f"{path}: lab {lab.id}"
    ids = [other.id for other in chapter.labs]
    if lab.count != len(lab.cases) or lab.count < 1:
        raise CourseBroken(f"{where}: count = {lab.count}, but {lab.tests} has {len(lab.cases)}")
    if unknown := set(lab.needs) - set(ids[: ids.index(lab.id)]):
        raise CourseBroken(f"{where}: needs names {sorted(unknown)}, no earlier lab")
    if unknown := set(lab.observes) - set(lab.cases):
        raise CourseBroken(f"{where}: observes names {sorted(unknown)}, not in {lab.tests}")
    if not lab.first_red.strip() or not lab.hints:
        raise CourseBroken(f"{where}: first_red and hints must not be empty")
    if not 0 < lab.timeout_s <= 120:
        raise CourseBroken(f"{where}: timeout_s = {lab.timeout_s}, allowed is above 0 to 120")
    if bool(lab.holes) == bool(lab.before):
        raise CourseBroken(f"{where}: needs holes, or (with holes = []) before = a fault's id")
    if lab.before and lab.before not in {fault.id for fault in chapter.faults_of(lab.id)}:
        raise CourseBroken(f"{where}: before = {lab.before!r} is no fault of this lab")
    _texts(path, [(f"lab {lab.id} title", lab.title), *((f"lab {lab.id} hints", hint)
                                                        for hint in lab.hints)])


def _check_fault(chapter: Chapter, fault: Fault, path: Path) -> None:
    where = f"{path}: fault {fault.id}"
    labs = {lab.id: lab for lab in chapter.labs}
    if fault.lab not in labs:
        raise CourseBroken(f"{where}: lab = {fault.lab!r} is no lab of this chapter")
    if not fault.killed_by or set(fault.killed_by) - set(labs[fault.lab].cases):
        raise CourseBroken(f"{where}: killed_by {list(fault.killed_by)} must name tests of "
                           f"{labs[fault.lab].tests}")
    module, _, name = fault.seam.partition(":")
    if not module or not name:
        raise CourseBroken(f"{where}: seam = {fault.seam!r} is not module:name")
    _texts(path, [(f"fault {fault.id} breaks", fault.breaks)])


def _check_holes(chapter: Chapter, solution: Path, path: Path) -> None:
    if not solution.is_dir():
        return  # inside a practice folder the manifest travels without its solution
    defined: dict[str, set[str]] = {}
    for hole in chapter.holes:
        module, _, name = hole.partition(":")
        if module not in defined:
            defined[module] = _definitions(solution / module_path(module))
        if name not in defined[module]:
            raise CourseBroken(f"{path}: hole {hole!r} is not defined in "
                               f"{solution / module_path(module)}")


def _definitions(path: Path) -> set[str]:
    """`f` and `C.f` for each function and method, found by lines; `blank` reads it exactly."""
    source = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    names: set[str] = set()
    owner = ""
    for kind, inner, name in _ANY_DEFINITION.findall(source):
        if kind == "class":
            owner = name if not inner else owner
        else:
            names.add(f"{owner}.{name}" if inner else name)
    return names


def _unique(path: Path, key: str, values: Iterable[str]) -> None:
    repeated = [value for value, times in Counter(values).items() if times > 1]
    if repeated:
        raise CourseBroken(f"{path}: {key} {repeated[0]!r} stands twice")


def _texts(path: Path, texts: Iterable[tuple[str, Text]]) -> None:
    for key, text in texts:
        if not text.en.strip() or not text.zh.strip():
            raise CourseBroken(f"{path}: {key} must have both en and zh")
