"""The `course` command. Each command loads, acts and shows; imports stay inside what needs them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from course import __version__
from course.errors import INFRASTRUCTURE, INTERRUPTED, RED, CourseError

if TYPE_CHECKING:
    from course.manifest import Course
    from course.outline import Chapter, Lab
    from course.practice import Practice

P = ParamSpec("P")
FOLDER = click.Path(path_type=Path)
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--root", type=FOLDER, envvar="COURSE_ROOT", metavar="DIR",
              help="The course (or practice folder) to use. Default: found by walking up.")
@click.version_option(__version__, prog_name="course")
@click.pass_context
def cli(context: click.Context, root: Path | None) -> None:
    """Learn by tests: practise a chapter, see the first red, break it on purpose, prove it all."""
    context.obj = root


def command(function: Callable[P, int | None]) -> click.Command:
    """A command whose course errors are shown (as JSON where asked) and whose result is the exit
    code. Our own bugs keep their traceback."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            status = function(*args, **kwargs)
        except CourseError as problem:
            _show_error(problem, bool(kwargs.get("as_json")))
            status = problem.exit_code
        sys.exit(status or 0)

    return cli.command(name=function.__name__.rstrip("_"))(run)


@command
@as_json
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True)
def list_(as_json: bool, lang: str) -> None:
    """Tracks, chapters, labs and their counts."""
    course, chapters = _outline()
    if as_json:
        _json({"schema": "course.list/1", "tracks": [
            {"id": track.id, "title": track.title.in_language(lang), "chapters": [
                _chapter_json(chapter, lang) for chapter in chapters if chapter.track == track.id]}
            for track in course.tracks]})
    else:
        from course.render import terminal

        terminal.course_list(course, chapters, lang)


@command
@click.argument("chapter", required=False)
@click.argument("folder", type=FOLDER, required=False)
@click.option("--run", "run_tests", is_flag=True, help="Run the tests of all chapters up to it.")
@click.option("--lock", is_flag=True, help="Write checkpoints.lock anew and say what moved.")
def checkpoint(chapter: str | None, folder: Path | None, run_tests: bool, lock: bool) -> int:
    """Fold the code as it stands after CHAPTER; check the lock; print digest and contents.

    With FOLDER the tree is written there. --run runs the tests of every chapter up to it.
    """
    from course.checkpoints import fold_checked, relock, tests_of, write_new
    from course.render import terminal

    course = _course()
    if lock:
        moved = relock(course)
        terminal.lines([*(f"moved: {name}" for name in moved),
                        f"checkpoints.lock: {len(moved)} chapters moved"])
        return 0
    if chapter is None:
        raise click.UsageError("CHAPTER is missing (or --lock)")
    tree = fold_checked(course, chapter)
    if folder:
        write_new(course, tree, folder)
    terminal.checkpoint(course.name_of(chapter), tree, folder)
    if not run_tests:
        return 0
    with terminal.progress("checkpoint") as step:
        result = tests_of(course, chapter, tree, step)
    terminal.run(result, folder or Path.cwd())
    return 0 if result.green else RED


@command
@click.argument("chapter")
@click.argument("folder", type=FOLDER)
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True,
              help="Language of the texts in the folder.")
@click.option("--no-check", is_flag=True, help="Do not prove the start (build, first red).")
@as_json
def practice(chapter: str, folder: Path, lang: str, no_check: bool, as_json: bool) -> None:
    """Make a practice folder for CHAPTER at FOLDER and prove that its start is right."""
    from course.practice import make

    course = _course()
    made = make(course, course.chapter(chapter), folder, lang=lang,
                prove=(lambda _: None) if no_check else _prove_start)
    if as_json:
        _json({"schema": "course.practice/1", "chapter": made.chapter.id,
               "folder": str(made.folder), "first_red": made.manifest.first_red})
    else:
        from course.render.report import practice_made

        click.echo(practice_made(made, folder))


@command
@as_json
def build(as_json: bool) -> int:
    """Compile, import, compare public signatures."""
    from course.labs import build_chapter

    desk = _practice()
    result = build_chapter(desk.folder, desk.chapter, desk.manifest.signatures)
    if as_json:
        _json({"schema": "course.build/1", "chapter": desk.chapter.id, "build": result.to_json()})
    else:
        from course.render import terminal

        terminal.build(result, desk.folder)
    return 0 if result.ok else RED


@command
@click.argument("what", required=False, metavar="[LAB|CHAPTER|all]")
@as_json
def test(what: str | None, as_json: bool) -> int:
    """Run one lab, one chapter, or `all` through this chapter. Default: this chapter's labs."""
    from course.desk import run_desk

    desk = _practice()
    if not as_json:
        _import_meanwhile("course.render.terminal")
    result = run_desk(desk, what)
    if as_json:
        _json(result.to_json())
    else:
        from course.render import terminal

        terminal.run(result, desk.folder)
    return 0 if result.green else RED


@command
@click.argument("lab")
@click.option("--more", is_flag=True, help="Show the next hint at once, whatever was shown last.")
def hint(lab: str, more: bool) -> None:
    """The next hint for LAB. Remembers what was shown."""
    from course.desk import next_hint

    click.echo(next_hint(_practice(), lab, more=more))


@command
@click.argument("what", required=False, metavar="[LAB|FAULT-ID]")
@as_json
def fault(what: str | None, as_json: bool) -> int:
    """Break one invariant at a time and see the right test fail. Edits no file.

    LAB runs all faults of a lab, FAULT-ID one of them; without it every lab's.
    """
    from course.desk import fault_desk
    from course.render import terminal

    desk = _practice()
    with terminal.progress("fault") as step:
        reports = fault_desk(desk, what, step)
    if as_json:
        documents = [report.to_json() for report in reports]
        _json(documents[0] if len(documents) == 1 else
              {"schema": "course.faults/1", "chapter": desk.chapter.id, "labs": documents})
    else:
        for report in reports:
            terminal.faults(report)
    return 0 if all(report.holds for report in reports) else RED


@command
@click.option("-o", "--output", type=FOLDER, help="Also write the record to FILE.")
@as_json
def record(output: Path | None, as_json: bool) -> int:
    """The acceptance record, from what really runs now."""
    from course.record import acceptance
    from course.render import terminal

    desk = _practice()
    with terminal.progress("record") as step:
        result = acceptance(desk, step)
    if output:
        output.write_text(result.text, "utf-8")
    _json(result.to_json()) if as_json else terminal.lines(result.text.splitlines())
    return 0 if result.holds else RED


@command
def restore() -> None:
    """Put changed or deleted test files back. Never touches what the learner edits."""
    from course.practice import restore as put_back

    back = put_back(_practice())
    click.echo("\n".join(f"restored {path}" for path in back) or "nothing was changed")


@command
@click.argument("lab")
def reset(lab: str) -> None:
    """Take one lab's code out again; a backup of each file stays beside it."""
    from course.practice import reset as blank_again

    desk = _practice()
    for path, backup in blank_again(desk, desk.lab(lab)):
        click.echo(f"reset {path.name} (backup: {backup.name})")


@command
@click.argument("chapter", required=False)
@click.option("--write", "mode", flag_value="write", help="Write starters/ from the solutions.")
@click.option("--check", "mode", flag_value="check", help="Exit 1 if any starter is not current.")
def starters(chapter: str | None, mode: str | None) -> int:
    """Make the scaffolds of all chapters (or CHAPTER) from their solutions, or check them."""
    from course.starters import differences, write

    course, writing = _course(), mode == "write"
    chapters = [course.chapter(chapter)] if chapter else list(course.chapters())
    changed = [path for one in chapters
               for path in (write if writing else differences)(course, one)]
    for path in changed:
        click.echo(f"{'wrote' if writing else 'not current:'} {path}")
    if changed and not writing:
        click.echo("next:  course starters --write", err=True)
        return RED
    click.echo("every starter is current")
    return 0


@command
@click.argument("chapter", required=False)
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1, 100),
              help="Run every solution this often, in shuffled order.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Default: two a processor.")
@as_json
def verify(chapter: str | None, repeat: int, jobs: int | None, as_json: bool) -> int:
    """Prove the course (or CHAPTER): locks, starts, solutions, scaffolds, faults, texts."""
    from course.render import terminal
    from course.verify import prove

    with terminal.progress("verify") as step:
        report = prove(_course(), chapter, repeat=repeat, jobs=jobs or 2 * (os.cpu_count() or 1),
                       progress=step)
    _json(report.to_json()) if as_json else terminal.lines(report.lines)
    return 0 if report.holds else RED


@command
@click.argument("submissions", nargs=-1, required=True, metavar="SUBMISSION...",
                type=click.Path(path_type=Path, readable=False))
@click.option("--chapter", required=True, metavar="ID", help="What the submissions are for.")
@click.option("--out", required=True, type=FOLDER, metavar="DIR", help="Where results go.")
@click.option("--format", "formats", multiple=True, metavar="NAME",
              help="Also write junit, csv, excel, gradescope, exercism, github, markdown, html.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 256),
              help="Submissions graded side by side.")
@click.option("--dask", metavar="ADDRESS|local", help="Grade on a Dask cluster.")
@click.option("--resume", is_flag=True, help="Go on with the batch in DIR.")
@click.option("--sandbox", type=click.Choice(["bubblewrap", "none"]), default="bubblewrap",
              show_default=True, help="none: no walls at all; every result is marked.")
@click.option("--budget", default=30.0, show_default=True, type=click.FloatRange(1, 3600),
              metavar="SECONDS", help="All the time that one submission gets.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True)
@as_json
def grade(submissions: tuple[Path, ...], chapter: str, as_json: bool, **wish: Any) -> int:
    """Grade SUBMISSIONs (folders, .zip, .tar.*, .py) with hidden probes, in a sandbox.

    Exit 0: all passed, 1: one did not, 4: no sandbox, or one could not be graded.
    """
    from course.batch import exit_code
    from course.marking import Wish, mark, summary
    from course.render import json, terminal

    wanted = Wish(**wish)
    with terminal.progress("grade") as step:
        batch = mark(_course(), chapter, submissions, wanted, step)
    json.show_parts(json.results(batch)) if as_json else terminal.lines(summary(batch, wanted.out))
    return exit_code(batch)


@command
def doctor() -> int:
    """What is here and what is missing: Python, the practice folder, the sandbox for grading."""
    from course.doctor import examine
    from course.render import terminal

    checks = examine(_root() or Path.cwd())
    terminal.checks(checks)
    return 0 if all(check.ok for check in checks) else INFRASTRUCTURE


@command
@click.argument("chapter", required=False)
@click.option("--keep", type=FOLDER, metavar="DIR", help="Make the practice in DIR and keep it.")
def demo(chapter: str | None, keep: Path | None) -> int:
    """A student's hour on CHAPTER (default: the last of the first track), shown step by step."""
    from course.demo import show

    return show(_course(), chapter, keep)


@command
@click.argument("service", type=click.Choice(["gradescope"]))
@click.argument("chapter")
@click.option("-o", "--output", type=FOLDER, required=True, metavar="FILE.zip",
              help="Where to write the autograder.")
def export(service: str, chapter: str, output: Path) -> None:
    """Make an autograder that a grading service runs for CHAPTER."""
    from course.gradescope_zip import write

    write(_course(), chapter, output)
    click.echo(f"{service} autograder for chapter {chapter}: {output}")


def main() -> None:
    """The console script. Ctrl-C and SIGTERM end with 130, nothing half-written, no child left."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as problem:
        if "--json" in sys.argv:
            _json({"error": {"kind": "usage", "message": problem.format_message(),
                             "next": "course --help"}})
        problem.show()
        sys.exit(problem.exit_code)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _root() -> Path | None:
    root = click.get_current_context().find_root().obj
    return root if isinstance(root, Path) else None


def _course() -> Course:
    from course.find import find_course

    return find_course(_root())


def _practice() -> Practice:
    from course.practice import open_practice

    return open_practice(_root() or Path.cwd())


def _outline() -> tuple[Course, list[Chapter]]:
    from course.find import outline_here

    return outline_here(_root())


def _chapter_json(chapter: Chapter, lang: str) -> dict[str, Any]:
    def lab_json(lab: Lab) -> dict[str, Any]:
        return {"id": lab.id, "title": lab.title.in_language(lang), "count": lab.count,
                "points": lab.points, "faults": len(chapter.faults_of(lab.id))}

    return {"id": chapter.id, "name": chapter.name, "title": chapter.title.in_language(lang),
            "count": chapter.count, "labs": [lab_json(lab) for lab in chapter.labs]}


def _json(value: Any) -> None:
    from course.render.json import show

    show(value)


def _show_error(problem: CourseError, as_json: bool) -> None:
    if as_json:
        _json(problem.to_json())
    from course.render import terminal

    terminal.error(problem)


def _prove_start(desk: Practice) -> dict[str, Any]:
    from course.start import prove_start

    return prove_start(desk)


def _import_meanwhile(name: str) -> None:
    """Load what will show the result while the tests run in their own process."""
    import importlib
    import threading

    threading.Thread(target=importlib.import_module, args=(name,), daemon=True).start()
