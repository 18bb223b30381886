"""A signature: one way out for all that is wrong in an envelope, then a list of rules."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pi_course.errors import CourseError
from pi_course.plugin_json import strict_json
from pi_course.plugin_versions import compare_versions
from pi_course.values import canonical_json

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
    """Written by json itself; all five are texts."""
    fields = {**asdict(statement), "keyId": key_id}
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return b"".join((DOMAIN, text.encode()))


def sign(statement: Statement, key_id: str, private_key: bytes) -> bytes:
    """An envelope around the raw signature."""
    raw = Ed25519PrivateKey.from_private_bytes(private_key).sign(signed_message(statement, key_id))
    return canonical_json({"signature": base64.b64encode(raw).decode(), "keyId": key_id})


def verify(
    statement: Statement,
    envelope: bytes | None,
    policy: TrustPolicy,
    *,
    now_ms: int,
    installed: str | None = None,
) -> Trust:
    """Find out whose it is, then go through the rules in their order."""
    key_id, key = "", None
    if envelope is not None:
        key_id, key = _publisher(statement, envelope, policy)
    elif statement.name not in policy.unsigned_local:
        raise CourseError("SIGNATURE_INVALID", "no signature")
    end = key.not_after_ms if key else None
    gone = statement.tree in policy.revoked or (key is not None and key_id in policy.revoked)
    rules = (
        ("KEY_EXPIRED", lambda: end is not None and end < now_ms),
        ("REVOKED", lambda: gone),
        ("ROLLBACK", lambda: installed and compare_versions(installed, statement.version) == 1),
    )
    for code, broken in rules:
        if broken():
            raise CourseError(code, f"{statement.name}: not any more")
    return Trust("signed", key.publisher, key_id) if key else Trust("unsigned-local")


def _publisher(
    statement: Statement, envelope: bytes, policy: TrustPolicy
) -> tuple[str, TrustedKey]:
    """The key whose signature is in the envelope; one way out for all that is wrong."""
    try:
        fields = strict_json(envelope, code="SIGNATURE_INVALID", max_bytes=MAX_ENVELOPE)
        if not isinstance(fields, Mapping) or set(fields) != {"keyId", "signature"}:
            raise ValueError("fields")
        key_id, text = fields["keyId"], fields["signature"]
        if type(key_id) is not str or type(text) is not str:
            raise ValueError("texts")
        key = policy.keys[key_id]
        if statement.name not in key.plugins:
            raise ValueError("plugin")
        raw = base64.b64decode(text, validate=True)
        message = signed_message(statement, key_id)
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(raw, message)
    except (KeyError, ValueError, InvalidSignature):
        raise CourseError("SIGNATURE_INVALID", "plugin.sig does not hold") from None
    return key_id, key
