"""Prove that a practice starts as it should: it builds, and lab one is red for one reason."""

from __future__ import annotations

from course.children import Children
from course.errors import CourseBroken
from course.labs import build_chapter, run_labs
from course.outline import Lab
from course.practice import Practice
from course.results import Json, LabResult
from course.runner import COLD


def prove_start(desk: Practice, children: Children = COLD) -> Json:
    """The first red as found, as JSON. CourseBroken says what differs from the manifest."""
    chapter = desk.chapter
    built = build_chapter(desk.folder, chapter, desk.manifest.signatures, children)
    if built.error:
        raise CourseBroken(f"chapter {chapter.id} does not start: its scaffold does not build "
                           f"({built.error.type}: {built.error.message})",
                           "course starters --write")
    lab = chapter.labs[0]
    result = run_labs(desk.folder, desk.manifest.chapters, [lab], lang=desk.manifest.lang,
                      children=children)
    if wrong := not_as_declared(lab, result.labs[0]):
        raise CourseBroken(f"chapter {chapter.id} does not start as "
                           f"labs/{chapter.name}/chapter.toml declares: {wrong}",
                           f"course verify {chapter.id}")
    red = result.first_red
    return {} if red is None else {**red.to_json(), "passed": 0, "total": lab.count}


def not_as_declared(lab: Lab, seen: LabResult) -> str | None:
    """How a lab that should be 0 of its count with its first red differs from that, or None.

    Every case of a lab with holes must say exactly `first_red`. A lab that deepens another one
    (holes = []) declares the first line of its first case.
    """
    if seen.passed:
        green = [case.name for case in seen.cases if case.outcome == "passed"]
        return f"lab {lab.id} is {seen.passed}/{lab.count}: {green[0]} is already green"
    for case in seen.cases if lab.holes else seen.cases[:1]:
        said = case.error.message if lab.holes and case.error else (
            case.error.first_line if case.error else "")
        if said != lab.first_red:
            kind = case.error.type if case.error else str(case.outcome)
            return (f"{case.id} says {kind}: {said.splitlines()[0] if said else ''!r} "
                    f"where first_red is {lab.first_red!r}")
    return None
