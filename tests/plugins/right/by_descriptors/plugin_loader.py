"""The gate: the bytes that were parsed are kept, and compared with those that were read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pi_course.errors import CourseError
from pi_course.plugin_content import Content, check_entries, read_content
from pi_course.plugin_folder import MANIFEST_FILE, load_plugin
from pi_course.plugin_lock import LockEntry, check_lock
from pi_course.plugin_manifest import Manifest, parse_manifest
from pi_course.plugin_signature import Statement, Trust, TrustPolicy, verify
from pi_course.plugin_versions import check_host, read_manifest

PARSERS = {1: parse_manifest}
"""Every schemaVersion that this host reads, with its parser."""


@dataclass(frozen=True, slots=True)
class VerifiedPlugin:
    """A plugin of which everything was proved that can be proved without running it.

    It holds bytes, not a path: whoever starts it has nothing to read again.
    """

    manifest: Manifest
    content: Content
    trust: Trust
    runtime_api: str

    @property
    def lock_entry(self) -> LockEntry:
        """What to write into the lock, once somebody has decided to admit this release."""
        return LockEntry(self.manifest.version, self.content.digest, self.runtime_api)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person approved: these permissions, for exactly this content, and nothing newer."""

    digest: str
    permissions: frozenset[str]


def admit_plugin(
    root: Path,
    name: str,
    *,
    runtime_api: str,
    policy: TrustPolicy,
    lock: Mapping[str, LockEntry] | None,
    now_ms: int,
) -> VerifiedPlugin:
    """The proofs in their order; what each has read goes to the next."""
    seen: list[bytes] = []

    def parse(data: bytes) -> Manifest:
        seen.append(data)
        return read_manifest(data, PARSERS)

    plugin = load_plugin(root, name, parse=parse)
    check_host(plugin.manifest.api, runtime_api)
    content = read_content(plugin.folder)
    if content.files.get(MANIFEST_FILE) != seen[-1]:
        raise CourseError("DIGEST_MISMATCH", "plugin.json: another one now")
    check_entries(plugin.manifest.tools, content)
    found = LockEntry(plugin.manifest.version, content.digest, runtime_api)
    statement = Statement(
        plugin.manifest.name, found.version, hashlib.sha256(seen[-1]).hexdigest(), found.digest
    )
    admitted = lock[name].version if lock and name in lock else None
    trust = verify(statement, content.signature, policy, now_ms=now_ms, installed=admitted)
    if lock is not None:
        check_lock(lock, name, found)
    return VerifiedPlugin(plugin.manifest, content, trust, runtime_api)
