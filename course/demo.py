"""A student's hour, shown on the real course: start, first red, green, fault, record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course.desk import fault_desk, run_desk
from course.errors import RED
from course.manifest import Course
from course.practice import make
from course.record import acceptance
from course.render import terminal
from course.render.report import practice_made
from course.scratch import remove_tree
from course.snapshot import read_tree, write_tree
from course.start import prove_start


def show(course: Course, chapter_id: str | None, keep: Path | None) -> int:
    """Run the demo and print it; 0 when everything went as it must."""
    chapter = course.chapter(chapter_id or course.tracks[0].chapters[-1])
    fault = next((fault for fault in chapter.faults if fault.record), chapter.faults[0])
    with _folder(keep) as folder:
        _say(f"course practice {chapter.id} {folder}")
        desk = make(course, chapter, folder, lang="en", prove=prove_start)
        terminal.lines(practice_made(desk, folder).splitlines())
        _say(f"course test {chapter.labs[0].id}        (the scaffold, untouched)")
        terminal.run(run_desk(desk, chapter.labs[0].id), desk.folder)
        _say(f"cp solutions/{chapter.name}/… {folder}/        (as the reference)")
        write_tree(read_tree(course.root / "solutions" / chapter.name), desk.folder)
        _say("course test")
        solved = run_desk(desk, None)
        terminal.run(solved, desk.folder)
        _say(f"course fault {fault.id}")
        reports = fault_desk(desk, fault.id, lambda _: None)
        for report in reports:
            terminal.faults(report)
        _say("course record")
        record = acceptance(desk, lambda _: None)
        terminal.lines(record.text.splitlines())
    good = solved.green and all(report.holds for report in reports) and record.holds
    return 0 if good else RED


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    above = Path(tempfile.mkdtemp(prefix="course-demo-"))
    try:
        yield above / "desk"
    finally:
        remove_tree(above)


def _say(command: str) -> None:
    terminal.lines(["", f"$ {command}"])
