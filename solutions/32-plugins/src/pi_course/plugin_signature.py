"""Who made a release: an Ed25519 signature over exactly what this host has read.

A signature proves that whoever holds the private key signed these bytes under this name and
version. It does not prove that the code is harmless; that is for people, and for the sandbox.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn

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
    """Return the bytes that are signed: DOMAIN, then the canonical JSON of one object.

    The object has keyId, manifest, name, tree and version, all text. Everything that decides is
    in it, so no part of a release can be exchanged while the signature stays right.
    """
    return DOMAIN + canonical_json(
        {
            "keyId": key_id,
            "manifest": statement.manifest,
            "name": statement.name,
            "tree": statement.tree,
            "version": statement.version,
        }
    )


def sign(statement: Statement, key_id: str, private_key: bytes) -> bytes:
    """Return the content of plugin.sig: canonical JSON {"keyId", "signature"}, the latter base64.

    `private_key` is the 32 raw bytes of an Ed25519 key; the signature is over signed_message.
    """
    key = Ed25519PrivateKey.from_private_bytes(private_key)
    signature = base64.b64encode(key.sign(signed_message(statement, key_id))).decode("ascii")
    return canonical_json({"keyId": key_id, "signature": signature})


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
    if envelope is None:
        trust = _unsigned(statement, policy)
    else:
        trust = _signed(statement, envelope, policy, now_ms)
    if policy.revoked & {trust.key_id, statement.tree}:
        raise CourseError("REVOKED", f"{statement.name}: the key or this content was revoked")
    if installed is not None and compare_versions(statement.version, installed) < 0:
        raise CourseError("ROLLBACK", f"version: older than the {statement.name} admitted before")
    return trust


def _unsigned(statement: Statement, policy: TrustPolicy) -> Trust:
    if statement.name not in policy.unsigned_local:
        _refuse("the plugin is not signed, and the policy does not name it as unsigned-local")
    return Trust("unsigned-local")


def _signed(statement: Statement, envelope: bytes, policy: TrustPolicy, now_ms: int) -> Trust:
    key_id, signature = _open(envelope)
    key = policy.keys.get(key_id)
    if key is None or statement.name not in key.plugins:
        _refuse("the policy has no such key for this plugin")
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(
            signature, signed_message(statement, key_id)
        )
    except InvalidSignature:
        _refuse("the signature does not fit the content")
    if key.not_after_ms is not None and now_ms > key.not_after_ms:
        raise CourseError("KEY_EXPIRED", f"{statement.name}: the publisher's key has expired")
    return Trust("signed", key.publisher, key_id)


def _open(envelope: bytes) -> tuple[str, bytes]:
    fields = strict_json(envelope, code="SIGNATURE_INVALID", max_bytes=MAX_ENVELOPE)
    if not isinstance(fields, Mapping) or set(fields) != {"keyId", "signature"}:
        _refuse("must be an object with keyId and signature")
    key_id, text = fields["keyId"], fields["signature"]
    if not isinstance(key_id, str) or not isinstance(text, str):
        _refuse("keyId and signature must be text")
    try:
        signature = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        signature = b""
    if base64.b64encode(signature).decode("ascii") != text:
        _refuse("signature must be base64, as it is written")
    return key_id, signature


def _refuse(why: str) -> NoReturn:
    raise CourseError("SIGNATURE_INVALID", f"plugin.sig: {why}")
