"""Prove a chapter's probes: the reference agrees with itself, and every fault is refused.

A probe that hostile code can guess is no probe. So each lab needs an observation that the salt
changes, and a scaffold that turns `salt.raises` into a constant must not pass a single lab.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from course.answers import Answers, Key
from course.box import Box, open_box
from course.compiled import COMPILED, compile_probes, compile_tree, packed
from course.errors import Unavailable
from course.manifest import Course
from course.outline import Chapter, Fault
from course.probes import ProbeSet, agreed, ask, asked, load_probes, reference_answers
from course.snapshot import Tree, read_tree

Problems = list[str]
SALTS = ("verify-1", "verify-2")  # fixed, so that a proof is the same proof every time
BUDGET_S = 120.0
SABOTAGE = {
    "its scaffold passes": "",
    **{f"its scaffold passes with a salt.raises that always says {said}":
       f"\nimport __main__\n__main__.Salt.raises = staticmethod(lambda *_, **__: {said})\n"
       for said in (True, False)},
}


@dataclass
class ProbeProof:
    """The proofs about one chapter's probes. The reference is asked once for all of them."""

    course: Course
    chapter: Chapter
    tree: Tree
    probes: ProbeSet
    _reference: dict[Key, str] = field(default_factory=dict)
    _compiled: dict[str, bytes] = field(default_factory=dict)
    _box: list[Box] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def proofs(self) -> Iterator[tuple[str, Callable[[], Problems]]]:
        """Each proof by name, as a job that returns what does not hold."""
        yield "probes of the reference", self.reference_agrees
        for what in SABOTAGE:
            yield f"probes: {what}", lambda one=what: self.sabotage_is_refused(one)  # type: ignore[misc]
        for fault in self.chapter.faults:
            yield f"probes of fault {fault.id}", lambda one=fault: self.fault_is_refused(one)  # type: ignore[misc]

    def reference_agrees(self) -> Problems:
        """The reference gives every answer, the same one twice, and the salt changes some."""
        reference = self.reference()
        return [
            f"{self.place}: no observation of lab {lab.id} depends on the salt; a constant "
            "answer would pass"
            for lab in self.chapter.labs
            if all(reference[probe.name, 0] == reference[probe.name, 1]
                   for probe in self.probes.of(lab.id))
        ]

    def sabotage_is_refused(self, what: str) -> Problems:
        """No lab passes without its code, whatever is done to the salt."""
        starter = read_tree(self.course.root / "starters" / self.chapter.name)
        files = self._code() | {path: file.data for path, file in starter.items()}
        first = self.chapter.submit[0]
        files[first] += SABOTAGE[what].encode()
        answers = self._ask(files, SALTS, lab=None, fault=None)
        return [f"{self.place}: lab {lab.id}: {what}" for lab in self.chapter.labs
                if all(agreed(probe, self.reference(), answers)
                       for probe in self.probes.of(lab.id))]

    def fault_is_refused(self, fault: Fault) -> Problems:
        """Some probe of the fault's lab does not agree with the faulty reference, and for that one
        salt is enough: no fault may pass by luck."""
        source = self.course.root / "labs" / self.chapter.name / "faults.py"
        injected = {"source": source.read_text("utf-8"), "function": fault.function,
                    "seam": fault.seam}
        answers = self._ask(self._ready(), SALTS[:1], lab=fault.lab, fault=injected)
        if not answers.imported:
            return [f"{self.place}: fault {fault.id} cannot be put on {fault.seam}: "
                    f"{answers.cause}"]
        probes = self.probes.of(fault.lab)
        reference = {key: text for key, text in self.reference().items() if key[1] == 0}
        if all(agreed(probe, reference, answers) for probe in probes):
            return [f"{self.place}: no probe of lab {fault.lab} refuses fault {fault.id}"]
        return []

    def reference(self) -> Mapping[Key, str]:
        with self._lock:
            if not self._reference:
                question = asked(self.chapter, self.probes, SALTS, BUDGET_S)
                self._reference = reference_answers(
                    question, lambda: ask(self._where(), self._ready(), question))
            return self._reference

    @property
    def place(self) -> str:
        return f"labs/{self.chapter.name}/hidden/probes.py"

    def _ask(
        self, files: Mapping[str, bytes], salts: Sequence[str], *, lab: str | None,
        fault: Mapping[str, str] | None,
    ) -> Answers:
        self.reference()  # so that the box is there
        question = asked(self.chapter, self.probes, salts, BUDGET_S, lab=lab, fault=fault)
        return ask(self._where(), files, question)

    def _code(self) -> dict[str, bytes]:
        return {path: file.data for path, file in self.tree.items()}

    def _ready(self) -> dict[str, bytes]:
        """The code, compiled once for all proofs."""
        if not self._compiled:
            code = self._code()
            table = compile_tree(code) | compile_probes(self.probes.source)
            self._compiled.update(code, **{COMPILED: packed(table)})
        return self._compiled

    def _where(self) -> Box:
        """A sandbox; no walls where there is none, for this code is the course's own."""
        if not self._box:
            try:
                self._box.append(open_box("bubblewrap", [self.course.root]))
            except Unavailable:
                self._box.append(Box())
        return self._box[0]


def probe_proof(course: Course, chapter: Chapter, tree: Tree) -> ProbeProof | None:
    """The proofs about the chapter's probes; None where it has none, or nothing can fork."""
    probes = load_probes(course, chapter)
    if probes is None or not hasattr(os, "fork"):
        return None
    return ProbeProof(course, chapter, tree, probes)
