"""Lab 32.4: who made this release, in whose eyes, and is it still the one to use."""

import base64
import dataclasses
import json

import pi_course.plugin_signature as plugin_signature
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pi_course.errors import CourseError

TEAM, MALLORY = bytes(range(32)), bytes(range(32, 64))
RELEASE = plugin_signature.Statement("demo", "1.2.3", "aa" * 32, "sha256:" + "bb" * 32)


def _policy(**changes):
    key = plugin_signature.TrustedKey(
        "tools-team",
        plugin_signature.public_key_of(TEAM),
        frozenset({"demo"}),
        changes.pop("not_after_ms", None),
    )
    return plugin_signature.TrustPolicy(keys={"team-1": key}, **changes)


def _signed(statement=RELEASE, key_id="team-1", private_key=TEAM):
    return plugin_signature.sign(statement, key_id, private_key)


def _code(statement, envelope, policy, **rest):
    with pytest.raises(CourseError) as caught:
        plugin_signature.verify(statement, envelope, policy, **{"now_ms": 0, **rest})
    return caught.value.code


def test_signed_release_names_its_publisher():
    """A signature by a key of the policy is accepted, and says whose key it was."""
    trust = plugin_signature.verify(RELEASE, _signed(), _policy(), now_ms=0)
    assert (trust.kind, trust.publisher, trust.key_id) == ("signed", "tools-team", "team-1")
    envelope = json.loads(_signed())
    assert set(envelope) == {"keyId", "signature"}
    assert len(base64.b64decode(envelope["signature"], validate=True)) == 64


def test_every_part_of_the_release_is_signed():
    """Name, version, manifest, tree and key id each make the signature invalid when changed."""
    envelope = _signed()
    wider = dataclasses.replace(_policy().keys["team-1"], plugins=frozenset({"demo", "other"}))
    policy = plugin_signature.TrustPolicy(keys={"team-1": wider, "team-2": wider})
    assert plugin_signature.verify(RELEASE, envelope, policy, now_ms=0).kind == "signed"
    for field in ("name", "version", "manifest", "tree"):
        changed = dataclasses.replace(RELEASE, **{field: "other"})
        assert _code(changed, envelope, policy) == "SIGNATURE_INVALID", field
    renamed = json.dumps(json.loads(envelope) | {"keyId": "team-2"}).encode()
    assert _code(RELEASE, renamed, policy) == "SIGNATURE_INVALID"


def test_signature_made_for_something_else_does_not_fit():
    """What is signed starts with the domain, so the same words signed elsewhere count nothing."""
    message = plugin_signature.signed_message(RELEASE, "team-1")
    assert message.startswith(plugin_signature.DOMAIN)
    bare = message.removeprefix(plugin_signature.DOMAIN)
    fields = {"keyId": "team-1", **dataclasses.asdict(RELEASE)}
    assert json.loads(bare) == fields
    for signed in (bare, json.dumps(fields).encode(), b"other domain\0" + bare):
        raw = Ed25519PrivateKey.from_private_bytes(TEAM).sign(signed)
        text = base64.b64encode(raw).decode()
        envelope = json.dumps({"keyId": "team-1", "signature": text}).encode()
        assert _code(RELEASE, envelope, _policy()) == "SIGNATURE_INVALID"


def test_key_comes_from_the_policy_only():
    """Nobody vouches for himself: not by a key id of his own, nor by the id of somebody else."""
    for key_id in ("mallory", "team-1", ""):
        envelope = _signed(key_id=key_id, private_key=MALLORY)
        assert _code(RELEASE, envelope, _policy()) == "SIGNATURE_INVALID", key_id
    public = base64.b64encode(plugin_signature.public_key_of(MALLORY)).decode()
    envelope = json.loads(_signed(private_key=MALLORY)) | {"publicKey": public}
    assert _code(RELEASE, json.dumps(envelope).encode(), _policy()) == "SIGNATURE_INVALID"
    foreign = dataclasses.replace(RELEASE, name="git-tools")
    assert _code(foreign, _signed(foreign), _policy()) == "SIGNATURE_INVALID"
    assert _code(RELEASE, _signed(), plugin_signature.TrustPolicy()) == "SIGNATURE_INVALID"


def test_unsigned_is_a_named_exception():
    """Without signature only a named plugin passes; a broken signature is never none at all."""
    policy = _policy(unsigned_local=frozenset({"demo"}))
    trust = plugin_signature.verify(RELEASE, None, policy, now_ms=0)
    assert (trust.kind, trust.publisher) == ("unsigned-local", "")
    assert _code(RELEASE, None, _policy()) == "SIGNATURE_INVALID"
    assert _code(dataclasses.replace(RELEASE, name="other"), None, policy) == "SIGNATURE_INVALID"
    right = json.loads(_signed())
    broken = [b"", b"{}", b"null", b"\xff", _signed(private_key=MALLORY), b" " * 2_000]
    for signature in ("", "A" * 88, right["signature"][:-4], right["signature"] + "\n", 1, None):
        broken.append(json.dumps(right | {"signature": signature}).encode())
    for envelope in broken:
        assert _code(RELEASE, envelope, policy) == "SIGNATURE_INVALID", envelope


def test_revoked_and_expired_keys_count_no_more():
    """A key ends at its time, and key or content end at once when they are revoked."""
    until = _policy(not_after_ms=1_000)
    assert plugin_signature.verify(RELEASE, _signed(), until, now_ms=1_000).kind == "signed"
    assert _code(RELEASE, _signed(), until, now_ms=1_001) == "KEY_EXPIRED"
    for revoked in ("team-1", RELEASE.tree):
        policy = _policy(revoked=frozenset({revoked}))
        assert _code(RELEASE, _signed(), policy) == "REVOKED", revoked
    policy = _policy(revoked=frozenset({RELEASE.tree}), unsigned_local=frozenset({"demo"}))
    assert _code(RELEASE, None, policy) == "REVOKED"


def test_older_release_than_the_admitted_one_is_a_rollback():
    """A signature stays right for ever; what was replaced is refused all the same."""
    for installed in (None, "1.2.3", "1.2.3-rc.9", "1.2.2", "0.10.0"):
        trust = plugin_signature.verify(
            RELEASE, _signed(), _policy(), now_ms=0, installed=installed
        )
        assert trust.kind == "signed", installed
    for installed in ("1.2.4", "1.10.0", "2.0.0-rc.1"):
        assert _code(RELEASE, _signed(), _policy(), installed=installed) == "ROLLBACK", installed
    local = _policy(unsigned_local=frozenset({"demo"}))
    assert _code(RELEASE, None, local, installed="1.2.4") == "ROLLBACK"
