"""Signatures: fixed vectors, and a second implementation of what is signed."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEY = bytes(range(32))


@pytest.fixture
def statement(pi: Any) -> Any:
    return pi.plugin_signature.Statement("demo", "1.2.3", "ab" * 32, "sha256:" + "cd" * 32)


@pytest.fixture
def policy(pi: Any) -> Any:
    key = pi.plugin_signature.TrustedKey(
        "team", pi.plugin_signature.public_key_of(KEY), frozenset({"demo"})
    )
    return pi.plugin_signature.TrustPolicy(keys={"k1": key})


def test_a_signature_can_be_made_by_hand(pi: Any, statement: Any, policy: Any) -> None:
    """Domain, then the object with sorted keys and no spaces, signed with plain Ed25519."""
    text = (
        '{"keyId":"k1","manifest":"' + "ab" * 32 + '","name":"demo","tree":"sha256:'
        + "cd" * 32 + '","version":"1.2.3"}'
    )
    message = b"pi-course plugin release 1\0" + text.encode()
    raw = Ed25519PrivateKey.from_private_bytes(KEY).sign(message)
    envelope = json.dumps({"signature": base64.b64encode(raw).decode(), "keyId": "k1"}).encode()
    assert pi.plugin_signature.verify(statement, envelope, policy, now_ms=0).kind == "signed"
    assert json.loads(pi.plugin_signature.sign(statement, "k1", KEY)) == json.loads(envelope)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.tuples(*[st.text(st.sampled_from('a"\\,:{}\n'), max_size=3)] * 5))
def test_the_message_tells_every_statement_apart(pi: Any, values: tuple[str, ...]) -> None:
    """No text in one field can be mistaken for the text of another."""
    *fields, key_id = values
    message = pi.plugin_signature.signed_message(pi.plugin_signature.Statement(*fields), key_id)
    parsed = json.loads(message.removeprefix(pi.plugin_signature.DOMAIN))
    named = dict(zip(("name", "version", "manifest", "tree", "keyId"), values, strict=True))
    assert parsed == named


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_flipped_bit_is_accepted(
    pi: Any, statement: Any, policy: Any, place: int, bit: int
) -> None:
    """An envelope with one bit changed is refused: there is one way to write a signature."""
    right = pi.plugin_signature.sign(statement, "k1", KEY)
    wrong = bytearray(right)
    wrong[place % len(wrong)] ^= 1 << bit
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_signature.verify(statement, bytes(wrong), policy, now_ms=0)
    assert caught.value.code == "SIGNATURE_INVALID"


def test_the_most_specific_refusal_comes_first(pi: Any, statement: Any, policy: Any) -> None:
    """A forged release is forged, whatever else is wrong with it; a revoked one is revoked."""
    signature, error = pi.plugin_signature, pi.errors.CourseError
    worst = dataclasses.replace(policy, revoked=frozenset({"k1", statement.tree}))
    forged = signature.sign(statement, "k1", bytes(32))
    for envelope, code in ((forged, "SIGNATURE_INVALID"), (None, "SIGNATURE_INVALID")):
        with pytest.raises(error) as caught:
            signature.verify(statement, envelope, worst, now_ms=0, installed="9.0.0")
        assert caught.value.code == code
    with pytest.raises(error) as caught:
        right = signature.sign(statement, "k1", KEY)
        signature.verify(statement, right, worst, now_ms=0, installed="9.0.0")
    assert caught.value.code == "REVOKED"


def test_keys_do_not_show_in_texts(pi: Any, policy: Any) -> None:
    """A policy can be logged."""
    assert "public_key" not in repr(policy)
