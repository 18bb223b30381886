"""The whole gate: every proof in its order, and only then a plugin that may be started.

data (manifest, version, host) → bytes (content, entries) → publisher (signature, rollback) → lock.
Each step works on what the step before has read; no step runs a line of the plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pi_course.plugin_content import Content
from pi_course.plugin_lock import LockEntry
from pi_course.plugin_manifest import Manifest, parse_manifest
from pi_course.plugin_signature import Trust, TrustPolicy

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
    """Return the plugin `name` in `root` when every proof holds; none of its code has run.

    In this order, each with its own codes: load_plugin, with read_manifest over PARSERS (so
    schemaVersion must be there) · check_host for `runtime_api` · read_content, whose plugin.json
    must still be the one that was parsed (DIGEST_MISMATCH) · check_entries · verify under
    `policy` at `now_ms`, not older than the version in the lock · check_lock.

    `lock` is None only for an installation: nothing is locked yet, and what comes back is shown
    to somebody who decides. Every later start passes the lock.
    """
    raise NotImplementedError("Lab 32.5 plugin worker 尚未实现")
