"""What a learner does in a practice folder: test, hint, fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from course.children import Children
from course.errors import UsageProblem
from course.faults import experiment
from course.labs import Expected, run_labs
from course.outline import Chapter, Lab
from course.practice import KIT, Practice, check_tests
from course.results import FaultReport, RunResult
from course.snapshot import replace_file


def select(desk: Practice, what: str | None) -> tuple[Chapter, tuple[Lab, ...]]:
    """The chapter and labs that `what` names: nothing, a lab, a chapter, or "all"."""
    chapters = desk.manifest.chapters
    if what == "all":
        return desk.chapter, tuple(lab for chapter in chapters for lab in chapter.labs)
    for chapter in chapters:
        if what in (chapter.id, chapter.name) or (what is None and chapter is desk.chapter):
            return chapter, chapter.labs
    lab = desk.lab(what or "")
    return desk.chapter_of(lab.id), (lab,)


def run_desk(desk: Practice, what: str | None) -> RunResult:
    """Run the labs that `what` names, and for a red one those it needs, to say what blocks it."""
    chapter, labs = select(desk, what)
    check_tests(desk, labs)
    log_to = desk.folder / KIT / "log" / "output.txt"
    result = run_labs(desk.folder, _line(desk, chapter), labs, lang=desk.manifest.lang,
                      expected=expected_of(desk, chapter), log_to=log_to)
    return _with_blockers(desk, chapter, labs, result)


def expected_of(desk: Practice, chapter: Chapter) -> Expected | None:
    """The signatures that a build compares; only the desk's own chapter has any."""
    return desk.manifest.signatures if chapter.id == desk.chapter.id else None


def next_hint(desk: Practice, lab_id: str, *, more: bool) -> str:
    """The next hint as text; with `more` the ones shown before come first."""
    lab = desk.lab(lab_id)
    store = desk.folder / KIT / "seen.json"
    seen = _seen(desk)
    shown = min(int(seen.get(lab.id, 0)), len(lab.hints))
    upto = min(shown + 1, len(lab.hints))
    with suppress(OSError):  # a read-only folder forgets
        replace_file(store, json.dumps({**seen, lab.id: upto}).encode())
    first = 0 if more else upto - 1
    lines = [f"hint {number + 1}/{len(lab.hints)}: {hint.in_language(desk.manifest.lang)}"
             for number, hint in enumerate(lab.hints) if first <= number < upto]
    if shown == len(lab.hints):
        lines.append(f"(that was the last hint of lab {lab.id})")
    return "\n".join(lines)


def fault_desk(
    desk: Practice, what: str | None, progress: Callable[[str], None]
) -> list[FaultReport]:
    """Experiments on one lab, with one fault, or on every lab of the chapter that has faults."""
    reports = []
    with Children(warm=True) as children:
        for lab, fault_ids in chosen_faults(desk, what):
            chapter = desk.chapter_of(lab.id)
            check_tests(desk, (lab,))
            faults = [fault for fault in chapter.faults_of(lab.id) if fault.id in fault_ids]
            reports.append(experiment(
                desk.folder, _line(desk, chapter), lab, faults, desk.faults_file(chapter),
                lang=desk.manifest.lang, progress=progress, children=children))
    return reports


def chosen_faults(desk: Practice, what: str | None) -> list[tuple[Lab, set[str]]]:
    """The labs that `what` (lab, chapter, fault or nothing) names, with fault ids of each."""
    for chapter in desk.manifest.chapters:
        for fault in chapter.faults:
            if fault.id == what and (chapter is desk.chapter or what not in _fault_ids(desk)):
                return [(chapter.lab(fault.lab), {fault.id})]
    chapter, labs = select(desk, what)
    chosen = [(lab, {fault.id for fault in chapter.faults_of(lab.id)}) for lab in labs]
    chosen = [(lab, ids) for lab, ids in chosen if ids]
    if not chosen:
        raise UsageProblem(f"there are no faults for {what or chapter.id}", "course list")
    return chosen


def _fault_ids(desk: Practice) -> set[str]:
    return {fault.id for fault in desk.chapter.faults}


def _line(desk: Practice, chapter: Chapter) -> Sequence[Chapter]:
    chapters = desk.manifest.chapters
    return chapters[: chapters.index(chapter) + 1]


def _with_blockers(
    desk: Practice, chapter: Chapter, labs: Sequence[Lab], result: RunResult
) -> RunResult:
    ids = {lab.id for lab in labs}
    red = {lab.id for lab in result.labs if not lab.green}
    missing = {need for lab in labs if lab.id in red for need in lab.needs if need not in ids}
    if not missing:
        return result
    needed = [lab for lab in chapter.labs if lab.id in missing]
    check_tests(desk, tuple(needed))
    seen = run_labs(desk.folder, _line(desk, chapter), needed, lang=desk.manifest.lang)
    blocked = {lab.id for lab in seen.labs if not lab.green}
    return replace(result, labs=tuple(
        replace(judged, blocked_by=tuple(n for n in lab.needs if n in blocked | red))
        if judged.id in red else judged
        for lab, judged in zip(labs, result.labs, strict=True)))


def _seen(desk: Practice) -> dict[str, int]:
    with suppress(OSError, ValueError):
        seen = json.loads((desk.folder / KIT / "seen.json").read_bytes())
        if isinstance(seen, dict):
            return {key: value for key, value in seen.items() if isinstance(value, int)}
    return {}
