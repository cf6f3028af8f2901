"""Signatures over the raw body: right, wrong, missing, cut short, of another algorithm."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers.body_signature import is_signed, only

BODY, SECRET = b'{"type": "message_api_read"}', "s3cret"


def mac(body: bytes = BODY, secret: str = SECRET, algorithm: str = "sha256") -> str:
    return hmac.new(secret.encode(), body, algorithm).hexdigest()


def test_a_right_signature_is_taken_with_and_without_a_prefix() -> None:
    assert is_signed(mac(), BODY, SECRET)
    assert is_signed(f"sha256={mac()}", BODY, SECRET, prefix="sha256=")
    assert is_signed(mac(algorithm="sha512"), BODY, SECRET, algorithm="sha512")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "sha256=",
        mac(),  # without its prefix
        f"sha256={mac()[:-1]}",
        f"sha256={mac()[:32]}",
        f"sha256={mac()}0",
        f"sha256={mac().upper()}",
        f"SHA256={mac()}",
        f"sha1={hmac.new(SECRET.encode(), BODY, hashlib.sha1).hexdigest()}",
        f"sha512={mac(algorithm='sha512')}",
        f"sha256={mac(algorithm='sha512')}",
        f"sha256={mac(secret='other')}",
        f"sha256={mac(secret='')}",
        f"sha256={mac(BODY + b' ')}",
        f"sha256={hashlib.sha256(BODY).hexdigest()}",
        "sha256=é",
        "sha256=\udcff",
    ],
)
def test_anything_else_is_refused(value: str | None) -> None:
    assert not is_signed(value, BODY, SECRET, prefix="sha256=")


def test_an_empty_secret_signs_nothing() -> None:
    assert not is_signed(f"sha256={mac(secret='')}", BODY, "", prefix="sha256=")


@given(st.binary(max_size=60))
def test_a_signature_is_good_for_no_other_body(other: bytes) -> None:
    assert is_signed(mac(), other, SECRET) is (other == BODY)


@given(st.text())
def test_no_header_whatever_makes_it_raise(value: str) -> None:
    assert is_signed(value, BODY, SECRET) is (value == mac())


def test_a_header_is_found_in_any_case_and_refused_when_it_is_there_twice() -> None:
    assert only({"X-Sign": "a"}, "x-sign") == "a"
    assert only({"x-sign": "a", "Other": "b"}, "X-Sign") == "a"
    assert only({"X-Sign": "a", "x-sign": "a"}, "X-Sign") is None
    assert only({}, "X-Sign") is None
