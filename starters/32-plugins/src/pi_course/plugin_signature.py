"""Who made a release: an Ed25519 signature over exactly what this host has read.

A signature proves that whoever holds the private key signed these bytes under this name and
version. It does not prove that the code is harmless; that is for people, and for the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DOMAIN = b"pi-course plugin release 1\0"
"""What a signature of ours is about; a signature made for something else never fits."""

MAX_ENVELOPE = 1_024


@dataclass(frozen=True, slots=True)
class Statement:
    """What is signed, as the host itself found it: never copied out of what came with the plugin.

    manifest is the SHA-256 (hex) of plugin.json, tree the digest that tree_digest gives.
    """

    name: str
    version: str
    manifest: str
    tree: str


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key that the owner of this host trusts, for these plugins and until that moment (ms)."""

    publisher: str
    public_key: bytes = field(repr=False)
    plugins: frozenset[str]
    not_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Whom this host trusts; an empty policy trusts nobody.

    keys: key id → TrustedKey. revoked: key ids and tree digests that no longer count.
    unsigned_local: the names of plugins under development here that may come without signature.
    """

    keys: Mapping[str, TrustedKey] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    unsigned_local: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Trust:
    """Why a release was accepted: signed by a publisher's key, or named as unsigned-local."""

    kind: Literal["signed", "unsigned-local"]
    publisher: str = ""
    key_id: str = ""


def public_key_of(private_key: bytes) -> bytes:
    """Return the 32 bytes of the public key that belongs to the 32 bytes of a private key."""
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def signed_message(statement: Statement, key_id: str) -> bytes:
    """Return the bytes that are signed: DOMAIN, then the canonical JSON of one object.

    The object has keyId, manifest, name, tree and version, all text. Everything that decides is
    in it, so no part of a release can be exchanged while the signature stays right.
    """
    raise NotImplementedError("Lab 32.4 release signature 尚未实现")


def sign(statement: Statement, key_id: str, private_key: bytes) -> bytes:
    """Return the content of plugin.sig: canonical JSON {"keyId", "signature"}, the latter base64.

    `private_key` is the 32 raw bytes of an Ed25519 key; the signature is over signed_message.
    """
    raise NotImplementedError("Lab 32.4 release signature 尚未实现")


def verify(
    statement: Statement,
    envelope: bytes | None,
    policy: TrustPolicy,
    *,
    now_ms: int,
    installed: str | None = None,
) -> Trust:
    """Return why `policy` accepts the release of `statement`; `envelope` is plugin.sig or None.

    The key comes from the policy, under the id that the envelope names. Without an envelope only
    a name in unsigned_local passes; an envelope that does not hold is never taken for none.

    Codes of CourseError, in the order in which they are found:
    SIGNATURE_INVALID  no envelope, or one that is malformed; an id that the policy does not have;
                       a key that is not for this plugin; a signature that does not fit
    KEY_EXPIRED        `now_ms` is after the key's not_after_ms
    REVOKED            the key id or the tree digest is in `revoked`
    ROLLBACK           the version is older than `installed`, the one this host has admitted
    """
    raise NotImplementedError("Lab 32.4 release signature 尚未实现")
