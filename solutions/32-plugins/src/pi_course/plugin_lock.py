"""Which release was admitted: the lock names one version, one content, one host, and no range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.values import canonical_json


@dataclass(frozen=True, slots=True)
class LockEntry:
    """What was admitted under a name: the release, its content, the host it was admitted for."""

    version: str
    digest: str
    runtime_api: str


def check_lock(lock: Mapping[str, LockEntry], name: str, found: LockEntry) -> None:
    """Return nothing when `found` is exactly what is locked under `name`.

    CourseError NOT_LOCKED when nothing is locked under that name, or another version or another
    host API is: changing a plugin is somebody's decision, never what happens at a start.
    DIGEST_MISMATCH when the version is the same and the content is not.
    """
    locked = lock.get(name)
    if locked is None or (locked.version, locked.runtime_api) != (found.version, found.runtime_api):
        raise CourseError("NOT_LOCKED", f"{name}: this release is not the one in the lock")
    if locked.digest != found.digest:
        raise CourseError("DIGEST_MISMATCH", f"{name}: the locked version has other content")


def format_lock(lock: Mapping[str, LockEntry]) -> bytes:
    """Return the lock file for these plugins: canonical JSON, the same for the same lock."""
    return canonical_json(
        {
            name: {
                "version": entry.version,
                "digest": entry.digest,
                "runtimeApi": entry.runtime_api,
            }
            for name, entry in lock.items()
        }
    )


def parse_lock(data: bytes) -> Mapping[str, LockEntry]:
    """Return the lock that format_lock wrote. CourseError INVALID_LOCK for anything else."""
    document = strict_json(data, code="INVALID_LOCK")
    lock: dict[str, LockEntry] = {}
    for name, entry in document.items() if isinstance(document, Mapping) else [("", None)]:
        fields = dict(entry) if isinstance(entry, Mapping) else {}
        values = tuple(fields.pop(key, None) for key in ("version", "digest", "runtimeApi"))
        if fields or not all(isinstance(value, str) for value in values):
            raise CourseError("INVALID_LOCK", "needs version, digest and runtimeApi of each plugin")
        lock[name] = LockEntry(*map(str, values))
    return MappingProxyType(lock)
