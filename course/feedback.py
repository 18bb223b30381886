"""Run a submission's public tests in a box, as feedback: counts, and the first red a learner sees.

plugin runs inside, in one process with the submission, so its events may be forged: they are
checked for form before they are folded, and they never give points where there are probes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec

from course.box import DESK, SCRATCH, Box
from course.bubblewrap import FOLDER
from course.compiled import COMPILED
from course.events import Ending, Event, Folded, fold
from course.labs import first_red, lab_result
from course.leash import MIB, Limits
from course.outline import Chapter
from course.results import Build, CaseError, CaseResult, Outcome, RunResult, judge
from course.sandbox import SandboxResult

PLUGIN, INI = ".kit/plugin.py", ".kit/kit.ini"
EVENTS = 9  # the descriptor that the events go to: the only one that leads outside
# Standard output is for events alone; what the code prints goes to a file in the scratch place.
START = ("/bin/sh", "-c", 'PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec "$0" -P -B '
         f'{PLUGIN} "$1" {EVENTS}>&1 >"$2" 2>&1')
LEAST_S = 0.5  # with less time than this nothing can be learnt
ALARM = 128 + 14  # how plugin ends when importing takes too long
PRINTED = 48 * MIB  # of what the code prints, which fills a file
LAST_LINE = 1_000_000
SHORT, LONG = 11_000, 22_000  # characters of a message and of a traceback
SOURCES = ("src",)
NO_TIME = "no time was left for the public tests"

Short = Annotated[str, msgspec.Meta(max_length=SHORT)]


class _Error(msgspec.Struct):
    type: Annotated[str, msgspec.Meta(max_length=300)]
    message: Short
    frames: Annotated[list[tuple[Short, int | None]], msgspec.Meta(max_length=60)]
    trace: Annotated[str, msgspec.Meta(max_length=LONG)] = ""


class _Importing(msgspec.Struct, tag_field="event", tag="importing"):
    module: Short


class _Imported(msgspec.Struct, tag_field="event", tag="imported"):
    module: Short
    names: Annotated[list[Short], msgspec.Meta(max_length=10_000)]


class _ImportError(msgspec.Struct, tag_field="event", tag="import_error"):
    module: Short
    error: _Error


class _Collecting(msgspec.Struct, tag_field="event", tag="collecting"):
    node: Short


class _CollectError(msgspec.Struct, tag_field="event", tag="collect_error"):
    node: Short
    error: _Error


class _Start(msgspec.Struct, tag_field="event", tag="start"):
    node: Short
    offset: int


class _Case(msgspec.Struct, tag_field="event", tag="report"):
    node: Short
    when: Short
    outcome: Short
    duration: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    error: _Error | None


class _End(msgspec.Struct, tag_field="event", tag="end"):
    node: Short
    offset: int


class _Stopped(msgspec.Struct, tag_field="event", tag="stopped"):
    error: _Error


class _Finish(msgspec.Struct, tag_field="event", tag="finish"):
    threads: Annotated[list[Short], msgspec.Meta(max_length=100)]


_ANY = (_Importing | _Imported | _ImportError | _Collecting | _CollectError | _Start | _Case
        | _End | _Stopped | _Finish)


@dataclass(frozen=True)
class Feedback:
    """What the public tests showed. `ran`: whether any said how it went; `started`: whether the
    submission had its turn, so that it is to blame where none did."""

    result: RunResult
    ran: bool
    late: bool = False
    started: bool = True

    @property
    def why_not(self) -> str:
        """Why they did not run, in words for the student."""
        return "the public tests did not start" if self.started else NO_TIME


def run_public(
    box: Box, files: Mapping[str, bytes], chapter: Chapter, budget_s: float, lang: str = "en",
) -> Feedback:
    """The public tests of all labs on these files (which hold the tests), within the budget."""
    deadline = time.monotonic() + budget_s
    kit = Path(__file__).parent
    files = {**files, PLUGIN: (kit / "plugin.py").read_bytes(),
             INI: (kit / "kit.ini").read_bytes()}
    left: Sequence[str] = [node for lab in chapter.labs for node in lab.node_ids]
    done: dict[str, CaseResult] = {}
    parts: list[Folded] = []
    late = False
    while left and (seconds := deadline - time.monotonic()) > LEAST_S:
        spec = _spec(chapter, left, seconds, budget_s) | (
            {"compiled": COMPILED} if COMPILED in files else {})
        limits = Limits(wall_s=seconds, output=8 * MIB, flood=16 * MIB, file_size=PRINTED,
                        writable=True)
        seen = box.run([*START, box.python, json.dumps(spec), f"{SCRATCH}/output.txt"], files=files,
                       limits=limits)
        parts.append(_folded(seen, left, seconds, spec["import_s"]))
        late = late or seen.timed_out or seen.exit_status == ALARM
        done |= parts[-1].cases
        left = [node for node in left if node not in done] if parts[-1].goes_on else []
    ran = any(part.cases for part in parts)
    started = any(part.cases or part.imported for part in parts)
    return Feedback(_result(chapter, done, parts, lang), ran, late, started)


def _spec(
    chapter: Chapter, nodes: Sequence[str], seconds: float, budget_s: float
) -> dict[str, Any]:
    """What plugin is to do. One hanging test must leave time for the others."""
    limit = min(max(lab.timeout_s for lab in chapter.labs), budget_s / 5, seconds)
    return {"events": EVENTS, "folder": DESK, "sources": SOURCES, "modules": chapter.api,
            "select": list(dict.fromkeys(node.partition("::")[0] for node in nodes)),
            "only": nodes, "timeout_s": limit, "import_s": min(seconds, budget_s / 5),
            "ini": f"{DESK}/{INI}", "report": f"{SCRATCH}/report.txt",
            "basetemp": f"{SCRATCH}/tests"}


def _folded(
    seen: SandboxResult, expected: Sequence[str], seconds: float, import_s: float
) -> Folded:
    most = 1_000 + 20 * len(expected)
    events = list(islice(_events(seen.stdout, frozenset(expected)), most))
    if any(event["event"] == "finish" for event in events):
        ending = Ending("finished")
    elif seen.timed_out or seen.exit_status == ALARM:
        ending = Ending("timeout", limit_s=round(seconds if seen.timed_out else import_s, 1))
    else:
        status = seen.exit_status
        ending = Ending("died", status=128 - status if status > 128 else status)
    desk = Path(FOLDER)
    return fold(events, expected, ending, [*(desk / source for source in SOURCES), desk])


def _events(data: bytes, expected: frozenset[str]) -> Iterator[Event]:
    """The lines that have the form of an event, and are about a test that was asked for."""
    for line in data.split(b"\n"):
        try:
            event: Any = json.loads(line) if line else None
            checked = msgspec.convert(event, _ANY)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue
        if getattr(checked, "error", None):
            frames = event["error"]["frames"]
            event["error"]["frames"] = [(file, _line(number)) for file, number in frames]
        about_test = event["event"] in ("start", "report", "end")
        if not about_test or event["node"].partition("[")[0] in expected:
            yield event


def _line(number: int | None) -> int | None:
    """The number, if a line can have it."""
    return number if number and 0 < number <= LAST_LINE else None


def _result(
    chapter: Chapter, done: Mapping[str, CaseResult], parts: Sequence[Folded], lang: str
) -> RunResult:
    cases = {node: done.get(node, _not_run(node)) for lab in chapter.labs
             for node in lab.node_ids}
    reds = {lab.first_red: lab.id for lab in chapter.labs}
    labs = tuple(lab_result(lab, cases, Path(FOLDER), reds, lang) for lab in chapter.labs)
    build = parts[0].build if parts else Build(True)
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    result = judge(chapter.id, build, labs, needs={lab.id: lab.needs for lab in chapter.labs},
                   notes=notes)
    return replace(result, first_red=first_red(result, chapter.labs, lang))


def _not_run(node: str) -> CaseResult:
    return CaseResult(node, Outcome.NOT_RUN, error=CaseError("NotRun", f"{node} did not run"))
