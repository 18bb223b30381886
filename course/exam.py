"""What a chapter's submissions are graded by: a value that can travel to another machine."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from course import __version__
from course.answers import Key
from course.box import Box
from course.compiled import compile_probes, compile_tree, packed
from course.manifest import Course
from course.outline import Chapter
from course.packages import require
from course.probes import ProbeSet, ask, asked, load_probes, reference_answers
from course.snapshot import File, check_lock, checkpoint, digest, read_tree

FOR_REFERENCE = 4  # times a submission's budget: it must not fail for want of time


@dataclass(frozen=True)
class Exam:
    """What a chapter's submissions are graded by."""

    chapter: Chapter
    given: Mapping[str, bytes]  # the code that a submission is put into
    tests: Mapping[str, bytes]
    course_digest: str
    kit: str
    budget_s: float
    lang: str = "en"
    probes: ProbeSet | None = None
    salts: Sequence[str] = ()
    reference: Mapping[Key, str] = field(default_factory=dict)
    ready_tests: bytes = b""  # the given code and the tests, compiled
    ready_probes: bytes = b""  # the given code and the probes, compiled

    @property
    def verdict_by(self) -> str:
        return "public" if self.probes is None else "probes"

    @property
    def title(self) -> str:
        return self.chapter.title.in_language(self.lang)


def set_exam(
    course: Course, chapter_id: str, salts: Sequence[str], budget_s: float, lang: str
) -> Exam:
    """The exam without the reference's observations. CourseBroken where the course is not sound,
    Unavailable where a package that the chapter needs is missing."""
    chapter = course.chapter(chapter_id)
    require([chapter])
    tree = checkpoint(course, chapter_id)
    check_lock(course, chapter_id, tree)
    labs = course.root / "labs" / chapter.name
    tests = {lab.file: (labs / lab.tests).read_bytes() for lab in chapter.labs}
    tests |= {extra: (labs / extra).read_bytes() for extra in chapter.extras}
    given = {path: file.data for path, file in tree.items() if path not in chapter.submit}
    probes = load_probes(course, chapter)
    code = compile_tree(given)
    code_of_tests = compile_tree({lab.file: tests[lab.file] for lab in chapter.labs})
    return Exam(chapter, given, tests, course_digest(course, chapter), kit_digest(), budget_s,
                lang, probes, tuple(salts), ready_tests=packed(code | code_of_tests),
                ready_probes=packed(code | compile_probes(probes.source)) if probes else b"")


def answer_by_reference(exam: Exam, course: Course, box: Box) -> Exam:
    """The exam with the reference's observations; Unavailable where it does not give them."""
    if exam.probes is None:
        return exam
    files = {path: file.data for path, file in checkpoint(course, exam.chapter.id).items()}
    question = asked(exam.chapter, exam.probes, exam.salts, exam.budget_s * FOR_REFERENCE)
    return replace(exam, reference=reference_answers(question, lambda: ask(box, files, question)))


def course_digest(course: Course, chapter: Chapter) -> str:
    """What all that a chapter's verdicts depend on in the course comes down to."""
    labs = read_tree(course.root / "labs" / chapter.name)
    tree = {f"labs/{path}": file for path, file in labs.items()}
    tree |= {f"code/{path}": file for path, file in checkpoint(course, chapter.id).items()}
    return digest(tree)


def kit_digest() -> str:
    """The kit's version, what its own files come down to, and the interpreter's version."""
    package = Path(__file__).parent
    tree = {path.name: File(path.read_bytes())
            for path in sorted([*package.glob("*.py"), package / "kit.ini"])}
    return f"{__version__}+{digest(tree)[:16]}+{sys.implementation.cache_tag}"


def files_digest(files: Mapping[str, bytes]) -> str:
    """What the taken files of a submission come down to."""
    return digest({path: File(data) for path, data in files.items()})


def policy(exam: Exam, sandbox: str) -> dict[str, object]:
    """What two runs must have in common for their verdicts to stand in one batch."""
    return {"chapter": exam.chapter.id, "course_digest": exam.course_digest, "kit": exam.kit,
            "sandbox": sandbox, "verdict_by": exam.verdict_by, "budget_s": exam.budget_s,
            "lang": exam.lang, "salts": list(exam.salts)}


def policy_digest(exam: Exam, sandbox: str) -> str:
    """The policy in few characters."""
    text = json.dumps(policy(exam, sandbox), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
