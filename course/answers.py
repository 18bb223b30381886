"""What is asked of a submission, and what came back, read from output that nobody vouches for."""

from __future__ import annotations

import builtins
import json
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from course.compiled import COMPILED
from course.errors import Unavailable
from course.leash import MIB, Limits
from course.sandbox import SandboxResult

ANSWER = 64 * 1024  # bytes of one observation
AT_ONCE = 6  # processes side by side, most of them waiting for a clock
TOGETHER, ALONE = 24, 1  # questions that one process answers: quickly, or each for itself
ALARM = 128 + 14

Key = tuple[str, int]  # a probe's name and the number of the salt


@dataclass(frozen=True)
class Question:
    """What is asked: which probes under which salts, within how long altogether."""

    source: str
    labs: Mapping[str, str]  # the probes' names, and the lab of each
    salts: tuple[str, ...]
    modules: tuple[str, ...]
    budget_s: float
    fault: Mapping[str, str] | None = None
    group: int = ALONE

    @property
    def keys(self) -> Iterator[Key]:
        return ((name, salt) for salt in range(len(self.salts)) for name in self.labs)

    def spec(self, *, alone: bool, prepared: bool) -> bytes:
        """What the driver reads. `alone`: no process that it could see is anybody else's;
        `prepared`: the course's code is among the files, compiled."""
        return json.dumps({
            "probes": self.source, "labs": dict(self.labs), "salts": self.salts,
            "modules": self.modules, "sources": ["src"], "fault": self.fault,
            "site": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
            "import_s": self.budget_s / 3, "probe_s": self.budget_s / 6, "at_once": AT_ONCE,
            "group": self.group, "compiled": COMPILED if prepared else None,
            "answer_bytes": ANSWER, "alone": alone,
        }).encode()

    @property
    def limits(self) -> Limits:
        room = 4 * MIB + 3 * ANSWER * len(self.labs) * len(self.salts)
        return Limits(wall_s=self.budget_s, output=room, flood=2 * room, writable=True)


@dataclass(frozen=True)
class Answers:
    """What came back: observations as canonical text, and why there is none for the others."""

    observed: Mapping[Key, str] = field(default_factory=dict)
    problems: Mapping[Key, str] = field(default_factory=dict)
    cause: str = ""  # why the run as a whole ended too soon, in words for the student
    late: bool = False  # the clock had a part in it
    imported: bool = True
    duration_s: float = 0.0

    def but(self, names: Sequence[str], again: Answers) -> Answers:
        """These answers, except that for these probes what came back `again` counts."""
        def merged(old: Mapping[Key, str], new: Mapping[Key, str]) -> dict[Key, str]:
            return {key: text for key, text in old.items() if key[0] not in names} | dict(new)

        return replace(again, observed=merged(self.observed, again.observed),
                       problems=merged(self.problems, again.problems),
                       duration_s=self.duration_s + again.duration_s)


def read_answers(question: Question, seen: SandboxResult) -> Answers:
    """The answers in the driver's output, none of which is believed to be well-formed."""
    observed: dict[Key, str] = {}
    problems: dict[Key, str] = {}
    events: dict[str, str] = {}
    known = set(question.keys)
    for line in filter(None, map(_line, seen.stdout.split(b"\n"))):
        event, key = line.get("event"), _key(line, known)
        if isinstance(event, str):
            events.setdefault(event, str(line.get("type", ""))[:100])
        elif key and isinstance(line.get("observation"), str):
            if observed.setdefault(key, line["observation"]) != line["observation"]:
                problems[key] = "contradictory"
        elif key:
            problems[key] = str(line.get("problem"))[:100]
    if "ready" not in events:
        raise Unavailable(f"the sandbox did not start the probes: {_tail(seen.stderr)}")
    cause, late = _cause(question, seen, events)
    for key in known - set(observed):
        problems.setdefault(key, "late" if seen.timed_out else "silent")
    late = late or "late" in problems.values()
    answers = {key: text for key, text in observed.items() if key not in problems}
    return Answers(answers, problems, cause, late, "imported" in events, seen.duration_s)


def _cause(
    question: Question, seen: SandboxResult, events: Mapping[str, str]
) -> tuple[str, bool]:
    """Why the run ended before its end, in words, and whether the clock ended it."""
    where = "" if "imported" in events else " while it was imported"
    if "import_error" in events:
        return f"the submission cannot be imported: {_known(events['import_error'])}", False
    if "end" in events:
        return "", False
    if seen.timed_out:
        return f"no end{where} after {question.budget_s:.1f} s", True
    if where and seen.exit_status == ALARM:
        return f"no end{where} after {question.budget_s / 3:.1f} s", True
    if seen.stopped:
        used = {"memory": "too much memory", "files": "too many files", "output": "endless output"}
        return f"stopped{where}: {used.get(seen.stopped, seen.stopped)}", False
    return f"the process ended{where} ({_manner(seen.exit_status)})", False


def _known(name: str) -> str:
    """The exception's name where everybody knows it; another one could carry out a probe's text."""
    kind = getattr(builtins, name, None)
    known = isinstance(kind, type) and issubclass(kind, BaseException)
    return name if known else "an exception of its own"


def _manner(status: int) -> str:
    """The exit status or signal; a status that Python itself never has could be a message too."""
    if 128 < status < 128 + 65:
        return f"killed by signal {status - 128}"
    return f"exit status {status}" if status in (0, 1, 2) else "with an exit status of its own"


def _line(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw) if 0 < len(raw) <= 3 * ANSWER else None
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _key(line: Mapping[str, Any], known: set[Key]) -> Key | None:
    name, salt = line.get("probe"), line.get("salt")
    if type(name) is str and type(salt) is int and (name, salt) in known:
        return name, salt
    return None


def _tail(data: bytes) -> str:
    return data[-300:].decode("utf-8", "backslashreplace").strip() or "it said nothing"
