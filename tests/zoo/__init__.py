"""Submissions of every kind for tests/tiny_course, with the verdict that each must get."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ZOO = Path(__file__).parent
REPORT = "02-report/src/tally/report.py"
WRONG = '''
class Report:
    listeners = ()

    def top(self, most):
        return ["nothing"] * most

    def lines(self):
        return ["nothing 0"]


def report_on(text):
    return Report()
'''


@dataclass(frozen=True)
class Animal:
    """One submission of a single file, and what must come of it."""

    name: str
    source: bytes
    status: str
    points: float
    cause: str = ""


def animals(tiny: Path) -> list[Animal]:
    """All of them: right ones, wrong ones, hostile ones."""
    bases = {
        "right": (tiny / "solutions" / REPORT).read_text("utf-8"),
        "blank": (tiny / "starters" / REPORT).read_text("utf-8"),
        "wrong": WRONG,
    }
    kinds = (("right", "right", "passed", 6.0), ("wrong", "wrong", "failed", 0.0),
             ("hostile", "wrong", "failed", 0.0))
    found = []
    for kind, base, status, points in kinds:
        for name, row in tomllib.loads((ZOO / f"{kind}.toml").read_text("utf-8")).items():
            found.append(Animal(
                f"{kind}: {name}", _source(row, bases[row.get("base", base)]),
                row.get("status", status), row.get("points", points), row.get("cause", "")))
    return found


def _source(row: dict[str, str], base: str) -> bytes:
    parts = {"before": [row["code"], base], "whole": [row["code"]]}
    text = "\n".join(parts.get(row.get("where", "after"), [base, row["code"]]))
    if row.get("encode") == "crlf":
        return b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    if row.get("encode") == "cr":
        return text.replace("\n", "\r").encode()
    return text.encode(row.get("encode", "utf-8"), "surrogatepass")
