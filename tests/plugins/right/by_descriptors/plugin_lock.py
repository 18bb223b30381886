"""A lock that is written under field names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.values import canonical_json


@dataclass(frozen=True, slots=True)
class LockEntry:
    """What was admitted under a name: the release, its content, the host it was admitted for."""

    version: str
    digest: str
    runtime_api: str


_FIELDS = (("digest", "digest"), ("host", "runtime_api"), ("release", "version"))


def check_lock(lock: Mapping[str, LockEntry], name: str, found: LockEntry) -> None:
    """The lock has this entry, or the reason is the first field that differs."""
    if name not in lock:
        raise CourseError("NOT_LOCKED", f"{name}: nobody has admitted it")
    locked = lock[name]
    different = {one for _, one in _FIELDS if getattr(locked, one) != getattr(found, one)}
    if different == {"digest"}:
        raise CourseError("DIGEST_MISMATCH", f"{name}: other content")
    if different:
        raise CourseError("NOT_LOCKED", f"{name}: another release")


def format_lock(lock: Mapping[str, LockEntry]) -> bytes:
    """Under short names of our own."""
    return canonical_json(
        {
            name: {short: getattr(entry, field) for short, field in _FIELDS}
            for name, entry in lock.items()
        }
    )


def parse_lock(data: bytes) -> Mapping[str, LockEntry]:
    """The same names back, all of them texts, and nothing else."""
    document = strict_json(data, code="INVALID_LOCK")
    lock = {}
    if not isinstance(document, Mapping):
        raise CourseError("INVALID_LOCK", "no object")
    for name, entry in document.items():
        if not isinstance(entry, Mapping) or sorted(entry) != [short for short, _ in _FIELDS]:
            raise CourseError("INVALID_LOCK", "other fields")
        if any(type(value) is not str for value in entry.values()):
            raise CourseError("INVALID_LOCK", "no texts")
        lock[name] = LockEntry(**{field: str(entry[short]) for short, field in _FIELDS})
    return lock
