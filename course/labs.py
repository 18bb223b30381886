"""Run labs of a chapter in a folder and judge them once: build, cases, blocked labs, first red."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from course.advice import advise, missing_file, shadowing
from course.children import Children
from course.outline import Chapter, Lab, module_path
from course.packages import require
from course.results import (
    Build,
    CaseError,
    CaseResult,
    FirstRed,
    LabResult,
    Outcome,
    RunResult,
    judge,
)
from course.runner import COLD, Injection, Run, Suite, run
from course.runner import build as import_modules
from course.signatures import Signatures, difference, public_signatures
from course.syntax import parse

Expected = Mapping[str, Signatures]  # module → its public signatures


def run_labs(
    folder: Path,
    chapters: Sequence[Chapter],
    labs: Sequence[Lab],
    *,
    lang: str = "en",
    expected: Expected | None = None,
    fault: Injection | None = None,
    shuffle: int | None = None,
    log_to: Path | None = None,
    children: Children = COLD,
) -> RunResult:
    """The result of these labs, in this order; `chapters[-1]` is the chapter they stand for.

    Unavailable where a package that the chapters need is missing.
    """
    require(chapters)
    chapter = chapters[-1]
    runs = [
        run(folder, Suite(tuple(n for lab in group for n in lab.node_ids), limit),
            modules=chapter.api, fault=fault, shuffle=shuffle, log_to=log_to, children=children)
        for limit, group in groupby(labs, key=lambda lab: lab.timeout_s)  # one child a limit
    ]
    cases = {case.id: case for part in runs for case in part.cases}
    reds = {lab.first_red: lab.id for c in chapters for lab in c.labs}
    results = tuple(lab_result(lab, cases, folder, reds, lang) for lab in labs)
    build = _judged_build(folder, chapter, runs[0], expected) if runs else Build(True)
    notes = [note for part in runs for note in part.notes] + shadowing(folder)
    result = judge(
        chapter.id,
        build,
        results,
        needs={lab.id: lab.needs for lab in labs},
        notes=tuple(dict.fromkeys(notes)),
        log=next((part.log for part in runs if part.log), ""),
    )
    return replace(result, first_red=first_red(result, labs, lang))


def first_red(result: RunResult, labs: Sequence[Lab], lang: str) -> FirstRed | None:
    """The first case in declared order that is not passed, with what it observes."""
    for lab, judged in zip(labs, result.labs, strict=True):
        if case := judged.first_red:
            error = case.error or CaseError(str(case.outcome), "")
            seen = lab.observes.get(case.name)
            observes = seen.in_language(lang) if seen else ""
            return FirstRed(lab.id, case.id, error, observes, seen.look_at if seen else "",
                            case.output)
    return None


def build_chapter(
    folder: Path, chapter: Chapter, expected: Expected | None, children: Children = COLD
) -> Build:
    """Whether the chapter's code compiles, imports and keeps its public signatures."""
    require([chapter])
    static = _static_error(folder, chapter, expected, {})
    if static and static.type != "SignatureChanged":
        return Build(False, static)
    seen = import_modules(folder, chapter.api, children=children)
    return _judged_build(folder, chapter, seen, expected)


def lab_result(
    lab: Lab, cases: Mapping[str, CaseResult], folder: Path, reds: Mapping[str, str], lang: str
) -> LabResult:
    found = []
    for node in lab.node_ids:
        case = cases[node]
        if case.outcome is Outcome.SKIPPED and case.error is None:
            case = replace(case, error=CaseError("Skipped", "a skipped test does not count"))
        if case.error:
            advice = advise(case.error, folder, reds, lab.id)
            case = replace(case, error=replace(case.error, advice=advice))
        found.append(case)
    return LabResult(lab.id, lab.title.in_language(lang), lab.count, tuple(found))


def _judged_build(folder: Path, chapter: Chapter, seen: Run, expected: Expected | None) -> Build:
    error = _static_error(folder, chapter, expected, seen.imported)
    if error is None and not seen.build.ok:
        error = seen.build.error
    if error is None:
        return Build(True)
    return Build(False, replace(error, advice=advise(error, folder, {})))


def _static_error(
    folder: Path, chapter: Chapter, expected: Expected | None,
    imported: Mapping[str, frozenset[str]],
) -> CaseError | None:
    """The first error that reading the learner's files shows, without running them."""
    for path in chapter.submit:
        if not (folder / path).is_file():
            near = missing_file(folder, path)
            return CaseError("FileNotFoundError", f"{path} is missing{near}", path)
        try:
            parse((folder / path).read_bytes(), filename=path)
        except SyntaxError as error:
            return CaseError(type(error).__name__, str(error.msg), path, error.lineno)
        except ValueError as error:
            return CaseError("SyntaxError", str(error), path)
    for module, signatures in (expected or {}).items():
        path = module_path(module)
        found = public_signatures((folder / path).read_bytes())
        if changed := difference(signatures, found, imported.get(module, frozenset())):
            return CaseError("SignatureChanged", f"{module}: {changed}", path)
    return None
