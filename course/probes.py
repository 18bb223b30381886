"""Ask a submission the salted probes of a chapter; compare what was observed with the reference.

labs/<chapter>/hidden/probes.py holds functions `probe_<lab>_<noun>(salt)` that return plain
observations (docs/grading.md). probe_driver runs them inside the sandbox; here only texts are
compared. What is missing, late, malformed or oversized equals nothing.
"""

from __future__ import annotations

import ast
import json
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course.box import Box
from course.compiled import COMPILED
from course.errors import CourseBroken, Unavailable
from course.leash import MIB, Limits
from course.outline import Chapter, Course
from course.sandbox import SandboxResult

DRIVER = ".kit/probe_driver.py"
ANSWER = 64 * 1024  # bytes of one observation
AT_ONCE = 6  # processes side by side, most of them waiting for a clock
TOGETHER, ALONE = 8, 1  # questions that one process answers: quickly, or each for itself
ALARM = 128 + 14
TRIES = 3  # of the reference, to give the same answers twice

Key = tuple[str, int]  # a probe's name and the number of the salt


@dataclass(frozen=True)
class Probe:
    """One scenario: its function, its lab, and the title that a student may see."""

    name: str
    lab: str
    title: str


@dataclass(frozen=True)
class ProbeSet:
    """The probes of a chapter, and the module that holds them."""

    source: str
    probes: tuple[Probe, ...]

    def of(self, lab_id: str) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if probe.lab == lab_id)


@dataclass(frozen=True)
class Question:
    """What is asked: which probes under which salts, within how long altogether."""

    source: str
    names: tuple[str, ...]
    salts: tuple[str, ...]
    modules: tuple[str, ...]
    budget_s: float
    fault: Mapping[str, str] | None = None
    group: int = ALONE

    @property
    def keys(self) -> Iterator[Key]:
        return ((name, salt) for salt in range(len(self.salts)) for name in self.names)

    def spec(self, *, alone: bool, prepared: bool) -> bytes:
        """What the driver reads. `alone`: no process that it could see is anybody else's;
        `prepared`: the course's code is among the files, compiled."""
        return json.dumps({
            "probes": self.source, "names": self.names, "salts": self.salts,
            "modules": self.modules, "sources": ["src"], "fault": self.fault,
            "site": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
            "import_s": self.budget_s / 3, "probe_s": self.budget_s / 6, "at_once": AT_ONCE,
            "group": self.group, "compiled": COMPILED if prepared else None,
            "answer_bytes": ANSWER, "alone": alone,
        }).encode()

    @property
    def limits(self) -> Limits:
        room = 4 * MIB + 3 * ANSWER * len(self.names) * len(self.salts)
        return Limits(wall_s=self.budget_s, output=room, flood=2 * room)


@dataclass(frozen=True)
class Answers:
    """What came back: observations as canonical text, and why there is none for the others."""

    observed: Mapping[Key, str] = field(default_factory=dict)
    problems: Mapping[Key, str] = field(default_factory=dict)
    cause: str = ""  # why the run as a whole ended too soon, in words for the student
    late: bool = False  # the clock had a part in it
    imported: bool = True
    duration_s: float = 0.0

    def but(self, names: Sequence[str], again: Answers) -> Answers:
        """These answers, except that for these probes what came back `again` counts."""
        def merged(old: Mapping[Key, str], new: Mapping[Key, str]) -> dict[Key, str]:
            return {key: text for key, text in old.items() if key[0] not in names} | dict(new)

        return replace(again, observed=merged(self.observed, again.observed),
                       problems=merged(self.problems, again.problems),
                       duration_s=self.duration_s + again.duration_s)


def load_probes(course: Course, chapter: Chapter) -> ProbeSet | None:
    """The chapter's probes, None if it has none; CourseBroken where they are not sound."""
    path = course.root / "labs" / chapter.name / "hidden" / "probes.py"
    if not path.is_file():
        return None
    try:
        source = path.read_bytes().decode("utf-8-sig")
        functions = [node for node in ast.parse(source).body
                     if isinstance(node, ast.FunctionDef) and node.name.startswith("probe_")]
    except (SyntaxError, ValueError) as error:
        raise CourseBroken(f"{path} is not readable Python: {error}") from None
    probes = tuple(_probe(node, chapter, path) for node in functions)
    if len({probe.name for probe in probes}) < len(probes):
        raise CourseBroken(f"{path}: two probes have one name")
    for lab in chapter.labs:
        if not any(probe.lab == lab.id for probe in probes):
            raise CourseBroken(f"{path}: lab {lab.id} has no probe; a chapter has probes for all "
                               "its labs or for none")
    return ProbeSet(source, probes)


def ask(box: Box, files: Mapping[str, bytes], question: Question) -> Answers:
    """What these files answer. Unavailable where the driver itself did not start."""
    driver = Path(__file__).with_name("probe_driver.py").read_bytes()
    seen = box.run([box.python, "-I", "-S", "-B", DRIVER], files={**files, DRIVER: driver},
                   stdin=question.spec(alone=box.sandbox is not None, prepared=COMPILED in files),
                   limits=question.limits)
    return read_answers(question, seen)


def read_answers(question: Question, seen: SandboxResult) -> Answers:
    """The answers in the driver's output, none of which is believed to be well-formed."""
    observed: dict[Key, str] = {}
    problems: dict[Key, str] = {}
    events: dict[str, str] = {}
    known = set(question.keys)
    for line in filter(None, map(_line, seen.stdout.split(b"\n"))):
        event, key = line.get("event"), _key(line, known)
        if isinstance(event, str):
            events.setdefault(event, str(line.get("type", ""))[:100])
        elif key and isinstance(line.get("observation"), str):
            if observed.setdefault(key, line["observation"]) != line["observation"]:
                problems[key] = "contradictory"
        elif key:
            problems[key] = str(line.get("problem"))[:100]
    if "ready" not in events:
        raise Unavailable(f"the sandbox did not start the probes: {_tail(seen.stderr)}")
    cause, late = _cause(question, seen, events)
    for key in known - set(observed):
        problems.setdefault(key, "late" if seen.timed_out else "silent")
    late = late or "late" in problems.values()
    answers = {key: text for key, text in observed.items() if key not in problems}
    return Answers(answers, problems, cause, late, "imported" in events, seen.duration_s)


def agreed(probe: Probe, reference: Mapping[Key, str], answers: Answers) -> bool:
    """Whether the answers under every salt are there and equal the reference's."""
    keys = [key for key in reference if key[0] == probe.name]
    return bool(keys) and all(answers.observed.get(key) == reference[key] for key in keys)


def reference_answers(question: Question, ask_once: Callable[[], Answers]) -> dict[Key, str]:
    """The reference's observations, each seen twice; Unavailable where one cannot be had so."""
    sure: dict[Key, str] = {}
    seen: list[Answers] = []
    for _ in range(TRIES):
        seen.append(ask_once())
        for key in question.keys:
            texts = [answers.observed[key] for answers in seen if key in answers.observed]
            twice = [text for text in texts if texts.count(text) > 1]
            sure |= {key: twice[0]} if twice else {}
        if all(key in sure for key in question.keys):
            return sure
    missing = next(key for key in question.keys if key not in sure)
    why = seen[-1].cause or seen[-1].problems.get(missing) or "another answer each time"
    raise Unavailable(f"the reference does not answer {missing[0]} the same way twice ({why}): "
                      "nobody can be graded by it", "course verify")


def _probe(node: ast.FunctionDef, chapter: Chapter, path: Path) -> Probe:
    labs = [lab.id for lab in chapter.labs
            if node.name.startswith(f"probe_{lab.id.replace('.', '_').replace('-', '_')}_")]
    if len(labs) != 1:
        raise CourseBroken(f"{path}: {node.name} is not named probe_<lab>_<noun> after a lab of "
                           f"chapter {chapter.id}")
    title = (ast.get_docstring(node) or "").strip().split("\n")[0]
    if not title:
        raise CourseBroken(f"{path}: {node.name} needs a docstring; its first line is the title")
    if [argument.arg for argument in node.args.args] != ["salt"]:
        raise CourseBroken(f"{path}: {node.name} must take salt and nothing else")
    return Probe(node.name, labs[0], title)


def _cause(
    question: Question, seen: SandboxResult, events: Mapping[str, str]
) -> tuple[str, bool]:
    """Why the run ended before its end, in words, and whether the clock ended it."""
    where = "" if "imported" in events else " while it was imported"
    if "import_error" in events:
        return f"the submission cannot be imported: {events['import_error'] or 'error'}", False
    if "end" in events:
        return "", False
    if seen.timed_out:
        return f"no end{where} after {question.budget_s:g} s", True
    if where and seen.exit_status == ALARM:
        return f"no end{where} after {question.budget_s / 3:g} s", True
    if seen.stopped:
        used = {"memory": "too much memory", "files": "too many files", "output": "endless output"}
        return f"stopped{where}: {used.get(seen.stopped, seen.stopped)}", False
    return f"the process ended{where} (exit status {seen.exit_status})", False


def _line(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw) if 0 < len(raw) <= 3 * ANSWER else None
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _key(line: Mapping[str, Any], known: set[Key]) -> Key | None:
    name, salt = line.get("probe"), line.get("salt")
    if type(name) is str and type(salt) is int and (name, salt) in known:
        return name, salt
    return None


def _tail(data: bytes) -> str:
    return data[-300:].decode("utf-8", "backslashreplace").strip() or "it said nothing"


def asked(
    chapter: Chapter, probes: ProbeSet, salts: Sequence[str], budget_s: float,
    *, lab: str | None = None, fault: Mapping[str, str] | None = None, group: int = ALONE,
) -> Question:
    """The question with all probes of the chapter, or those of one lab."""
    chosen = probes.of(lab) if lab else probes.probes
    return Question(probes.source, tuple(probe.name for probe in chosen), tuple(salts),
                    chapter.api, budget_s, fault, group)
