"""The acceptance record of a practice: each line from something that ran just now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from course import __version__
from course.children import Children
from course.desk import expected_of
from course.faults import experiment
from course.labs import build_chapter, run_labs
from course.outline import Fault
from course.practice import Practice, check_tests
from course.results import FaultReport, Json, RunResult, Verdict


@dataclass(frozen=True)
class Line:
    """One line: what was tried, what was seen, and whether that is what acceptance asks for."""

    what: str
    seen: str
    ok: bool


@dataclass(frozen=True)
class Record:
    """The whole record. `holds` is true when every line is as acceptance asks."""

    chapter: str
    title: str
    made_at: str
    lines: tuple[Line, ...]

    @property
    def holds(self) -> bool:
        return all(line.ok for line in self.lines)

    @property
    def text(self) -> str:
        head = f"# Acceptance record: chapter {self.chapter}, {self.title}"
        made = f"# {self.made_at}, course {__version__}"
        body = [f"{line.what}: {line.seen}" for line in self.lines]
        return "\n".join([head, made, *body, ""])

    def to_json(self) -> Json:
        lines = [{"what": line.what, "seen": line.seen, "ok": line.ok} for line in self.lines]
        return {"schema": "course.record/1", "chapter": self.chapter, "made_at": self.made_at,
                "holds": self.holds, "lines": lines}


def acceptance(desk: Practice, progress: Callable[[str], None]) -> Record:
    """Build, run everything through the chapter, run the record's fault; what all of it showed."""
    with Children(warm=True) as children:
        return _acceptance(desk, progress, children)


def _acceptance(
    desk: Practice, progress: Callable[[str], None], children: Children
) -> Record:
    chapters, chapter, lang = desk.manifest.chapters, desk.chapter, desk.manifest.lang
    every_lab = [lab for each in chapters for lab in each.labs]
    check_tests(desk, tuple(every_lab))
    progress("build")
    built = build_chapter(desk.folder, chapter, expected_of(desk, chapter), children)
    progress(f"every lab through chapter {chapter.id}")
    through = run_labs(desk.folder, chapters, every_lab, lang=lang, children=children)
    lines = [Line("fresh build", "pass" if built.ok else "failed", built.ok), _first_red(desk)]
    for lab in chapter.labs:
        seen = through.lab(lab.id)
        lines.append(Line(f"Lab {lab.id}", f"{seen.passed}/{seen.total}", seen.green))
    for fault in _recorded_faults(desk):
        lab = chapter.lab(fault.lab)
        report = experiment(desk.folder, chapters, lab, [fault], desk.faults_file(chapter),
                            lang=lang, progress=progress, children=children)
        lines += _fault_lines(fault, report, lang)
    passed = sum(through.lab(lab.id).passed for lab in chapter.labs)
    lines.append(Line("chapter total", f"{passed}/{chapter.count}", passed == chapter.count))
    lines.append(_through(chapter.id, through))
    made_at = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return Record(chapter.id, chapter.title.in_language(lang), made_at, tuple(lines))


def _first_red(desk: Practice) -> Line:
    """The first red that was found when the folder was made."""
    lab, found = desk.chapter.labs[0], desk.manifest.first_red
    if not found:
        return Line("first red", "not looked at when the folder was made (--no-check)", False)
    exact = found["error"]["message"].split("\n", 1)[0] == lab.first_red
    how = "exact scaffold error" if exact else "not the declared error"
    return Line("first red", f"Lab {found['lab']} {found['passed']}/{found['total']}, {how}", exact)


def _recorded_faults(desk: Practice) -> list[Fault]:
    """The faults that the manifest marks for the record; the first one where it marks none."""
    faults = desk.chapter.faults
    return [fault for fault in faults if fault.record] or list(faults[:1])


def _fault_lines(fault: Fault, report: FaultReport, lang: str) -> list[Line]:
    where = (fault.record or fault.breaks).in_language(lang)
    if not report.faults:
        seen = f"Lab {fault.lab} is not green, so no fault can be tried"
        return [Line("fault injected", seen, False), Line("fault restored", seen, False)]
    verdict = report.faults[0].verdict
    killed = verdict is Verdict.KILLED
    seen = f"Lab {fault.lab} fails at {where}" if killed else f"Lab {fault.lab} {verdict}: {where}"
    after = report.after
    back = f"Lab {fault.lab} {after.passed}/{after.total}" if after else "not run"
    return [Line("fault injected", seen, killed),
            Line("fault restored", back, after is not None and after.green)]


def _through(chapter_id: str, through: RunResult) -> Line:
    green = all(lab.green for lab in through.labs)
    seen = "all pass" if green else f"{through.passed}/{through.total}"
    return Line(f"through Chapter {chapter_id}", seen, green)
