"""Which release was admitted: the lock names one version, one content, one host, and no range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")


def format_lock(lock: Mapping[str, LockEntry]) -> bytes:
    """Return the lock file for these plugins: canonical JSON, the same for the same lock."""
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")


def parse_lock(data: bytes) -> Mapping[str, LockEntry]:
    """Return the lock that format_lock wrote. CourseError INVALID_LOCK for anything else."""
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")
