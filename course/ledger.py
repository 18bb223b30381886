"""The folder of a batch: what it is graded by, one record a submission, and the results.

Every file is written whole or not at all, so that a batch that was killed loses only what was in
hand. A record counts again only for the same submission under the same policy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from course.errors import UsageProblem
from course.grades import Batch, Grade, Status, grade_from_json
from course.render.formats import safe_name
from course.render.json import document, results
from course.snapshot import replace_by_parts, replace_file

SALTS, RECORDS, RESULTS = "salts.json", "submissions", "results.json"


@dataclass(frozen=True)
class Ledger:
    """The folder, and the names of the submissions in order."""

    folder: Path
    names: tuple[str, ...]

    def record(self, number: int) -> Path:
        return self.folder / RECORDS / f"{number + 1:04}-{safe_name(self.names[number])}.json"

    def write(self, number: int, key: str, grade: Grade, trace: str = "") -> None:
        """Keep this grade. `trace` is for the teacher alone: our own failure, if it was one."""
        data = {"key": key, "grade": grade.to_json()} | ({"trace": trace} if trace else {})
        replace_file(self.record(number), document(data))

    def read(self, number: int, key: str) -> Grade | None:
        """The grade that was kept under this key; None where there is none that counts."""
        try:
            kept = json.loads(self.record(number).read_bytes())
            grade = grade_from_json(kept["grade"]) if kept["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return None if grade and grade.status is Status.UNGRADABLE else grade

    def grade(self, number: int) -> Grade:
        """The grade that was kept last."""
        return grade_from_json(json.loads(self.record(number).read_bytes())["grade"])


class Grades(Sequence[Grade]):
    """The grades of a finished batch, read one by one: memory does not grow with their number."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def __len__(self) -> int:
        return len(self.ledger.names)

    @overload
    def __getitem__(self, number: int) -> Grade: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Grade]: ...
    def __getitem__(self, number: int | slice) -> Grade | Sequence[Grade]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return self.ledger.grade(range(len(self))[number])

    def __iter__(self) -> Iterator[Grade]:
        return (self.ledger.grade(number) for number in range(len(self)))


def read_policy(folder: Path, *, resume: bool) -> Mapping[str, Any] | None:
    """What an earlier batch in this folder was graded by; None for a new one.

    UsageProblem where there is an earlier batch that is not to be resumed.
    """
    path = folder / SALTS
    if not path.is_file():
        return None
    if not resume:
        raise UsageProblem(f"{folder} holds the results of another batch",
                           "--resume to go on with it, or another --out")
    try:
        kept = json.loads(path.read_bytes())
        if isinstance(kept, dict) and isinstance(kept["salts"], list):
            return kept
    except (ValueError, KeyError):
        pass
    raise UsageProblem(f"{path} cannot be read, so its batch cannot be resumed",
                       "course grade … --out ANOTHER-DIR")


def open_ledger(
    folder: Path, names: Sequence[str], policy: Mapping[str, Any], kept: Mapping[str, Any] | None
) -> Ledger:
    """The folder ready for records. UsageProblem where the earlier batch had another policy."""
    if kept:
        changed = sorted(key for key in policy if policy[key] != kept.get(key))
        if changed:
            raise UsageProblem(
                f"{folder} was graded with another {', '.join(changed)}; its verdicts cannot "
                "stand beside new ones", "course grade … --out ANOTHER-DIR")
    try:
        (folder / RECORDS).mkdir(parents=True, exist_ok=True)
        (folder / RESULTS).unlink(missing_ok=True)
        if not kept:
            replace_file(folder / SALTS, document(policy))
            (folder / SALTS).chmod(0o600)
    except OSError as error:
        raise UsageProblem(f"{folder} cannot be written: {error.strerror or error}") from None
    return Ledger(folder, tuple(names))


def write_results(batch: Batch, folder: Path) -> None:
    """results.json, the document course.grade/1, without ever holding all of it."""
    replace_by_parts(folder / RESULTS, results(batch))


def key_of(policy: str, name: str, taken: str) -> str:
    """Under what a grade is kept: the policy, the submission's name, what was taken of it."""
    parts = (policy, name, taken)
    sized = b"".join(len(part.encode("utf-8", "surrogatepass")).to_bytes(8, "big")
                     + part.encode("utf-8", "surrogatepass") for part in parts)
    return hashlib.sha256(sized).hexdigest()
