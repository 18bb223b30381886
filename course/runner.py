"""Run test files of a folder in a child process and return plain results.

The child is never trusted: its environment is scrubbed, its configuration is ours, its events
come over a private descriptor, its exit code decides nothing, and its whole process group is
killed at the end, at a time limit and when we are interrupted.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from course.children import HERE, OUTPUT_SHOWN, Children, Process, Spec
from course.events import Ending, Event, Folded, fold
from course.results import Build, CaseError, CaseResult, Outcome
from course.scratch import scratch_folder

COLD = Children()
START_LIMIT_S = 15.0  # for the interpreter, imports and collection: without any event this long
GRACE_S = 1.0  # for a test's own time limit to end it before we do
EVENT_LIMIT = 16 * 2**20  # bytes of one event line


@dataclass(frozen=True)
class Suite:
    """What to run: node ids in declared order, by file, under a limit for each test."""

    node_ids: tuple[str, ...]
    timeout_s: float = 10.0


@dataclass(frozen=True)
class Injection:
    """A fault to put on a seam: the faults.py file, its function and "module:qualname"."""

    file: Path
    function: str
    seam: str


@dataclass(frozen=True)
class Run:
    """What a run showed: one case for each node id in order, the build and what else was seen."""

    cases: tuple[CaseResult, ...]
    build: Build
    imported: Mapping[str, frozenset[str]]
    reached: bool
    notes: tuple[str, ...]
    log: str
    inject_error: str | None = None


def run(
    folder: Path,
    suite: Suite,
    *,
    modules: Sequence[str],
    sources: Sequence[str] = ("src",),
    fault: Injection | None = None,
    shuffle: int | None = None,
    log_to: Path | None = None,
    children: Children = COLD,
) -> Run:
    """Run the suite in `folder`. A test that kills or hangs its child costs only itself."""
    folder = folder.resolve()
    frames = [*(folder / source for source in sources), folder]
    spec = {"folder": str(folder), "sources": list(sources), "modules": list(modules),
            "timeout_s": suite.timeout_s, "shuffle": shuffle, "ini": str(HERE / "kit.ini"),
            "fault": _fault_spec(fault)}
    done: dict[str, CaseResult] = {}
    parts: list[Folded] = []
    with scratch_folder() as scratch:
        left: Sequence[str] = suite.node_ids
        while left:
            events, ending = _run_child(
                {**spec, "select": _files(left), "only": left}, scratch, children)
            part = fold(events, left, ending, frames)
            done |= _with_output(part, scratch / "output.txt")
            parts.append(part)
            left = [node for node in left if node not in done] if part.goes_on else []
        log = _keep_log(scratch / "output.txt", log_to)
    cases = tuple(done.get(node, _not_run(node)) for node in suite.node_ids)
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Run(cases, parts[0].build, parts[0].imported, any(p.reached for p in parts), notes, log,
               next((part.inject_error for part in parts if part.inject_error), None))


def build(
    folder: Path, modules: Sequence[str], sources: Sequence[str] = ("src",),
    children: Children = COLD,
) -> Run:
    """Only import the modules, in a child, and say what came of it."""
    folder = folder.resolve()
    with scratch_folder() as scratch:
        spec = {"folder": str(folder), "sources": list(sources), "modules": list(modules),
                "select": [], "fault": None}
        events, ending = _run_child(spec, scratch, children)
    part = fold(events, (), ending, [*(folder / source for source in sources), folder])
    return Run((), part.build, part.imported, False, part.notes, "")


def _files(node_ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(node.partition("::")[0] for node in node_ids))


def _not_run(node: str) -> CaseResult:
    error = CaseError("NotRun", f"{node} was not found in its file")
    return CaseResult(node, Outcome.NOT_RUN, error=error)


def _fault_spec(fault: Injection | None) -> dict[str, str] | None:
    if fault is None:
        return None
    return {"file": str(fault.file), "function": fault.function, "seam": fault.seam}


def _run_child(
    spec: Spec, scratch: Path, children: Children
) -> tuple[list[Event], Ending]:
    events: list[Event] = []
    spec = {"timeout_s": 10.0, "ini": "", "report": str(scratch / "report.txt"),
            "basetemp": str(scratch / "tmp"), **spec}
    with children.start(spec, scratch / "output.txt") as (process, channel):
        for event in _read(channel, process, spec["timeout_s"] + GRACE_S):
            if isinstance(event, Ending):
                return events, event
            events.append(event)
    raise AssertionError("a child always has an ending")


def _read(
    channel: int, process: Process, limit_s: float
) -> Iterator[Event | Ending]:
    """The child's events as they come, then its ending."""
    os.set_blocking(channel, False)
    buffer, allowed = b"", START_LIMIT_S
    deadline = time.monotonic() + allowed
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or len(buffer) > EVENT_LIMIT:
                yield Ending("timeout", limit_s=allowed)
                return
            gone = process.poll() is not None
            ready = selector.select(0 if gone else min(left, 0.05))
            data = _read_some(channel) if ready else None
            if data == b"" or (gone and not ready):
                yield Ending("died", status=process.wait())
                return
            *lines, buffer = (buffer + (data or b"")).split(b"\n")
            for event in map(_event, lines):
                if event["event"] == "finish":
                    yield event
                    yield Ending("finished")
                    return
                allowed = limit_s if event["event"] in ("start", "report") else START_LIMIT_S
                deadline = time.monotonic() + allowed
                yield event


def _read_some(channel: int) -> bytes | None:
    try:
        return os.read(channel, 65536)
    except BlockingIOError:
        return None


def _event(line: bytes) -> Event:
    try:
        event = json.loads(line)
        return event if isinstance(event, dict) and "event" in event else {"event": "noise"}
    except ValueError:
        return {"event": "noise"}


def _with_output(part: Folded, log: Path) -> dict[str, CaseResult]:
    """The part's cases, red ones with the head and tail of what they printed."""
    cases = dict(part.cases)
    for node, (start, end) in part.output.items():
        base = node.partition("[")[0]
        if base in cases and cases[base].outcome is not Outcome.PASSED:
            cases[base] = replace(cases[base], output=_excerpt(log, start, end))
    return cases


def _excerpt(log: Path, start: int, end: int | None) -> str:
    with log.open("rb") as stream:
        end = os.fstat(stream.fileno()).st_size if end is None else end
        stream.seek(start)
        if end - start <= OUTPUT_SHOWN:
            return stream.read(end - start).decode(errors="backslashreplace")
        head = stream.read(OUTPUT_SHOWN // 2)
        stream.seek(end - OUTPUT_SHOWN // 2)
        tail = stream.read(OUTPUT_SHOWN // 2)
    left_out = f"\n… {end - start - OUTPUT_SHOWN} bytes left out …\n".encode()
    return (head + left_out + tail).decode(errors="backslashreplace")


def _keep_log(output: Path, log_to: Path | None) -> str:
    """Keep the whole output where it was too long to show; its path, or nothing."""
    if log_to is None or not output.is_file() or output.stat().st_size <= OUTPUT_SHOWN:
        return ""
    with suppress(OSError):
        log_to.parent.mkdir(exist_ok=True)
        shutil.move(output, log_to)
        return str(log_to)
    return ""

