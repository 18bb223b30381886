"""Fault experiments: green first, each fault on its seam in a child of its own, green again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from course.children import Children
from course.labs import run_labs
from course.outline import Chapter, Fault, Lab
from course.results import CaseResult, FaultReport, FaultResult, LabResult, Outcome, Verdict
from course.runner import COLD, Injection, Run, Suite, run
from course.syntax import parse

Progress = Callable[[str], None]


def experiment(
    folder: Path,
    chapters: Sequence[Chapter],
    lab: Lab,
    faults: Sequence[Fault],
    faults_file: Path,
    *,
    lang: str = "en",
    progress: Progress = lambda _: None,
    children: Children = COLD,
) -> FaultReport:
    """Run the faults on the lab. Nothing on disk is edited, so there is nothing to restore."""
    chapter = chapters[-1]

    def plain() -> LabResult:
        return run_labs(folder, chapters, [lab], lang=lang, children=children).labs[0]

    progress(f"lab {lab.id} as it is")
    before = plain()
    if not before.green:
        return FaultReport(chapter.id, lab.id, before)
    results = []
    for fault in faults:
        progress(fault.id)
        results.append(inject(folder, chapter, lab, fault, faults_file, lang=lang,
                              children=children))
    progress(f"lab {lab.id} as it is, again")
    return FaultReport(chapter.id, lab.id, before, plain(), tuple(results))


def inject(
    folder: Path, chapter: Chapter, lab: Lab, fault: Fault, faults_file: Path, *,
    lang: str = "en", children: Children = COLD,
) -> FaultResult:
    """The verdict on one fault."""
    injection = Injection(faults_file, fault.function, fault.seam)
    seen = run(folder, Suite(lab.node_ids, lab.timeout_s), modules=chapter.api, fault=injection,
               children=children)
    verdict, killers, message = judge_fault(fault, seen)
    return FaultResult(fault.id, lab.id, fault.breaks.in_language(lang), verdict, killers, message,
                       source_of(faults_file, fault.function))


def judge_fault(fault: Fault, seen: Run) -> tuple[Verdict, tuple[str, ...], str]:
    """Killed only by a test named in `killed_by` that failed in its call phase."""
    failed = [case for case in seen.cases
              if case.outcome is Outcome.FAILED and case.phase == "call"]
    named = [case for case in failed if case.name in fault.killed_by]
    if seen.inject_error is not None:
        return Verdict.INCONCLUSIVE, (), seen.inject_error
    if not seen.reached:
        return Verdict.NOT_REACHED, (), f"{fault.seam} was never called"
    if named:
        return Verdict.KILLED, _names([named[0], *(c for c in failed if c is not named[0])]), (
            _message(named[0]))
    if failed:
        return Verdict.WRONG_KILLER, _names(failed), _message(failed[0])
    other = [case for case in seen.cases if case.outcome is not Outcome.PASSED]
    if other:
        return Verdict.INCONCLUSIVE, (), f"{other[0].name}: {other[0].outcome} {_message(other[0])}"
    return Verdict.SURVIVED, (), "every test passed although the invariant was broken"


def source_of(faults_file: Path, function: str) -> str:
    """The fault's source text, as the report shows it."""
    return _functions_in(faults_file.read_text("utf-8")).get(function, "")


@lru_cache(maxsize=4)
def _functions_in(source: str) -> Mapping[str, str]:
    lines = source.splitlines()
    return {node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
            for node in parse(source).body if isinstance(node, ast.FunctionDef)}


def _names(cases: Sequence[CaseResult]) -> tuple[str, ...]:
    return tuple(case.name for case in cases)


def _message(case: CaseResult) -> str:
    return f"{case.error.type}: {case.error.message}" if case.error else ""
