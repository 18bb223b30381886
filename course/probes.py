"""Ask a submission the salted probes of a chapter; compare what was observed with the reference.

labs/<chapter>/hidden/probes.py holds functions `probe_<lab>_<noun>(salt)` that return plain
observations (docs/probes.md). probe_driver runs them inside the sandbox; here only texts are
compared. What is missing, late, malformed or oversized equals nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.answers import ALONE, Answers, Key, Question, read_answers
from course.box import Box
from course.compiled import COMPILED
from course.errors import CourseBroken, Unavailable
from course.manifest import Course
from course.outline import Chapter

DRIVER = ".kit/probe_driver.py"
TRIES = 3  # of the reference, to give the same answers twice


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


def asked(
    chapter: Chapter, probes: ProbeSet, salts: Sequence[str], budget_s: float,
    *, lab: str | None = None, fault: Mapping[str, str] | None = None, group: int = ALONE,
) -> Question:
    """The question with all probes of the chapter, or those of one lab."""
    chosen = probes.of(lab) if lab else probes.probes
    return Question(probes.source, {probe.name: probe.lab for probe in chosen}, tuple(salts),
                    chapter.api, budget_s, fault, group)


def ask(box: Box, files: Mapping[str, bytes], question: Question) -> Answers:
    """What these files answer. Unavailable where the driver itself did not start."""
    driver = Path(__file__).with_name("probe_driver.py").read_bytes()
    seen = box.run([box.python, "-I", "-S", "-B", DRIVER], files={**files, DRIVER: driver},
                   stdin=question.spec(alone=box.sandbox is not None, prepared=COMPILED in files),
                   limits=question.limits)
    return read_answers(question, seen)


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
