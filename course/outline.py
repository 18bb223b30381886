"""A chapter of a course as frozen values: labs, faults, texts, and the track it stands in."""

from __future__ import annotations

import msgspec

from course.errors import UsageProblem


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
    packages: tuple[str, ...] = ()

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


def chapter_id_of(name: str) -> str:
    """`12-resources-and-extensions` → `12`."""
    return name.partition("-")[0]


def module_path(module: str) -> str:
    """`pi_course.resources` → `src/pi_course/resources.py`."""
    return f"src/{module.replace('.', '/')}.py"


def holes_in(chapter: Chapter, path: str) -> dict[str, str]:
    """The holes of one file of the layer: qualname → first red."""
    parts = (hole.partition(":") for hole in chapter.holes)
    return {name: chapter.holes[f"{module}:{name}"] for module, _, name in parts
            if module_path(module) == path}
