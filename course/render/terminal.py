"""What a person reads: results as lines on a terminal, plain where it is not one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from course.errors import CourseError
from course.manifest import Course
from course.outline import Chapter
from course.provision import Check
from course.render.plain import plain
from course.results import (
    Build,
    CaseError,
    FaultReport,
    FaultResult,
    FirstRed,
    LabResult,
    RunResult,
    Verdict,
)
from course.snapshot import Tree, digest

Progress = Callable[[str], None]
STYLES = {"green": "green", "red": "red", "blocked": "yellow"}


def console(*, errors: bool = False) -> Console:
    """A console that breaks no long line where its output is read by a program."""
    stream = sys.stderr if errors else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    made = Console(file=stream, highlight=False, emoji=False)
    if not made.is_terminal:
        made = Console(file=stream, highlight=False, emoji=False, width=10_000, soft_wrap=True)
    return made


def error(problem: CourseError) -> None:
    out = console(errors=True)
    out.print(Text.assemble(("error: ", "bold red"), plain(problem.message)))
    if problem.next_command:
        out.print(Text.assemble(("next:  ", "bold"), plain(problem.next_command)))


def course_list(course: Course, chapters: Sequence[Chapter], lang: str) -> None:
    out = console()
    out.print(Text(course.title.in_language(lang), style="bold"))
    for track in course.tracks:
        mine = [chapter for chapter in chapters if chapter.track == track.id]
        if not mine:
            continue
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        out.print()
        out.print(Text(f"{track.id}: {track.title.in_language(lang)}", style="cyan"))
        for chapter in mine:
            table.add_row(Text(chapter.id, style="bold"), Text(chapter.title.in_language(lang)),
                          f"{chapter.count} tests")
            for lab in chapter.labs:
                table.add_row("", Text(f"{lab.id}  {lab.title.in_language(lang)}", style="dim"),
                              Text(str(lab.count), style="dim"))
        out.print(table)


def checkpoint(name: str, tree: Tree, folder: Path | None) -> None:
    """The digest of a folded tree and what is in it."""
    out = console()
    out.print(Text.assemble((name, "bold"), f"  {digest(tree)}"))
    for path in sorted(tree):
        out.print(Text(f"{len(tree[path].data):8}  {plain(path)}"))
    if folder:
        out.print(Text(f"written to {folder}"))


def run(result: RunResult, folder: Path) -> None:
    """Counts a lab, then the first red with its own error and where to look."""
    out = console()
    if not result.build.ok and result.build.error:
        out.print(Text.assemble(("build: failed", "bold red")))
        _error(out, result.build.error, folder)
        out.print()
    for lab in result.labs:
        out.print(_lab_line(lab))
    if len(result.labs) > 1:
        style = "bold green" if result.green else "bold"
        out.print(Text(f"total {result.passed}/{result.total}", style=style))
    if result.first_red:
        out.print()
        _first_red(out, result.first_red, folder)
    for note in result.notes:
        out.print(Text.assemble(("note: ", "yellow"), plain(note)))
    if result.log:
        out.print(Text(f"full output: {result.log}", style="dim"))


def build(result: Build, folder: Path) -> None:
    out = console()
    if result.ok:
        out.print(Text("build: pass", style="green"))
    elif result.error:
        out.print(Text("build: failed", style="bold red"))
        _error(out, result.error, folder)


def faults(report: FaultReport) -> None:
    """Each experiment: the invariant, the fault, and the assertion that killed it."""
    out = console()
    out.print(_lab_line(report.before))
    if not report.before.green:
        out.print(f"a fault experiment needs a green lab: course test {report.lab}")
        return
    for result in report.faults:
        _fault(out, result, in_full=len(report.faults) <= 2)
    out.print()
    if report.after:
        out.print(Text("the code as it was, again:"))
        out.print(_lab_line(report.after))
    killed = sum(result.verdict is Verdict.KILLED for result in report.faults)
    out.print(Text(f"faults killed {killed}/{len(report.faults)}", style="bold"))
    if len(report.faults) > 2:
        out.print(Text(f"course fault {report.faults[0].id}   shows one with its source",
                       style="dim"))


def _fault(out: Console, result: FaultResult, *, in_full: bool) -> None:
    """The verdict, the invariant, the test that noticed and what it said."""
    good = result.verdict is Verdict.KILLED
    in_full = in_full or not good
    out.print()
    out.print(Text.assemble((f"{result.verdict.replace('_', ' ')}: ",
                             "bold green" if good else "bold red"), result.id))
    out.print(Text(f"  invariant  {result.breaks}"))
    for line in result.source.splitlines() if in_full else ():
        out.print(Text(f"  │ {line}", style="dim"))
    if result.killers:
        more = f"  (and {len(result.killers) - 1} more)" if len(result.killers) > 1 else ""
        out.print(Text(f"  noticed by {result.killers[0]}{more}"))
    for line in plain(result.message).rstrip().splitlines()[: 12 if in_full else 2]:
        out.print(Text(f"    {line}", style="red" if good else "yellow"))


def checks(found: Sequence[Check]) -> None:
    """One line a check, and under what is missing the command that mends it."""
    out = console()
    for check in found:
        mark = ("ok     ", "green") if check.ok else ("missing", "bold red")
        out.print(Text.assemble(mark, f"  {check.name:12}{plain(check.found)}"))
        for line in check.next_command.splitlines() if not check.ok else ():
            out.print(Text(f"           {line}"))


def lines(texts: Iterable[str]) -> None:
    """Plain lines, as they are."""
    out = console()
    for text in texts:
        out.print(Text(plain(text)))


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """What is going on, on stderr: one moving line on a terminal, a line a step elsewhere."""
    out = console(errors=True)
    if out.is_terminal:
        with out.status(Text(title)) as status:
            yield lambda text: status.update(Text(f"{title}: {plain(text)}"))
    else:
        yield lambda text: out.print(Text(f"{title}: {plain(text)}"))


def _lab_line(lab: LabResult) -> Text:
    line = Text.assemble(
        f"Lab {lab.id}  ", (f"{lab.passed}/{lab.total}", f"bold {STYLES[lab.status]}"),
        f"  {lab.title}")
    if lab.blocked_by:
        line.append(f"   blocked by {', '.join(lab.blocked_by)}", "yellow")
    return line


def _first_red(out: Console, red: FirstRed, folder: Path) -> None:
    out.print(Text.assemble(("first red  ", "bold red"), plain(red.test)))
    _error(out, red.error, folder)
    if red.observes:
        out.print(Text(f"  observes   {red.observes}"))
    if red.look_at:
        out.print(Text(f"  look at    {red.look_at}"))
    if red.output.strip():
        out.print(Text("  it printed:", style="dim"))
        for line in plain(red.output).splitlines()[-20:]:
            out.print(Text(f"    {line}", style="dim"))
    out.print(Text(f"  hint       course hint {red.lab}", style="dim"))


def _error(out: Console, error: CaseError, folder: Path) -> None:
    for number, line in enumerate(plain(error.message).splitlines() or [""]):
        out.print(Text(f"  {error.type}: {line}" if number == 0 else f"    {line}"))
        if number == 30:
            out.print(Text("    …", style="dim"))
            break
    if error.file:
        out.print(Text(f"  at         {error.file}:{error.line}" if error.line else
                       f"  at         {error.file}"))
        _source_line(out, folder / error.file, error.line)
    if error.advice:
        out.print(Text(f"  advice     {error.advice}", style="cyan"))


def _source_line(out: Console, path: Path, line: int | None) -> None:
    if line is None or not path.is_file():
        return
    source = path.read_text("utf-8", errors="replace").splitlines()
    if line <= len(source):
        code = Syntax(plain(source[line - 1].strip()), "python", background_color="default")
        text = code.highlight(plain(source[line - 1].strip()))
        out.print(Text.assemble("             ", text), end="")
