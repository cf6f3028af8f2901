"""Who signed a webhook, and who may set one up."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import Credentials, FixedCredentials
from firestore_outbox.providers.registry import Refused
from tests.providers.support import START
from tests.providers.whatsapp_cloud.bodies import envelope, status
from tests.providers.whatsapp_cloud.support import NAME, SECRETS

ADAPTERS = providers(ProviderSettings(), credentials=FixedCredentials({"acme": SECRETS}))
META = ADAPTERS[NAME]
SECRET = "app-secret"

# --- the signature


def signature(body: bytes, secret: str = SECRET, algorithm: str = "sha256") -> str:
    return f"{algorithm}={hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).hexdigest()}"


BODY = envelope({"statuses": [status()]})


@pytest.mark.parametrize(
    ("headers", "is_genuine"),
    [
        ({"X-Hub-Signature-256": signature(BODY)}, True),
        ({"x-hub-signature-256": signature(BODY)}, True),
        ({"X-Hub-Signature-256": signature(BODY, "another")}, False),
        ({"X-Hub-Signature-256": signature(BODY + b" ")}, False),
        ({"X-Hub-Signature-256": signature(BODY)[:-1]}, False),
        ({"X-Hub-Signature-256": signature(BODY)[:20]}, False),
        ({"X-Hub-Signature-256": signature(BODY) + "0"}, False),
        ({"X-Hub-Signature-256": signature(BODY).removeprefix("sha256=")}, False),
        ({"X-Hub-Signature-256": signature(BODY).replace("sha256=", "sha1=")}, False),
        ({"X-Hub-Signature-256": signature(BODY, algorithm="sha1")}, False),
        ({"X-Hub-Signature-256": signature(BODY, algorithm="sha512")}, False),
        ({"X-Hub-Signature": signature(BODY, algorithm="sha1")}, False),
        ({"X-Hub-Signature": signature(BODY)}, False),
        ({"X-Hub-Signature-256": signature(BODY), "x-hub-signature-256": "sha256=00"}, False),
        ({"X-Hub-Signature-256": ""}, False),
        ({"X-Hub-Signature-256": "sha256="}, False),
        ({"X-Hub-Signature-256": "sha256=ü"}, False),
        ({"X-Hub-Signature-256": "\ud800"}, False),
        ({}, False),
    ],
)
def test_only_the_app_secret_over_the_raw_body_is_genuine(headers: dict[str, str], is_genuine: bool) -> None:
    assert META.verify(headers, BODY, SECRET, now=START) is is_genuine


def test_no_secret_makes_nothing_genuine() -> None:
    assert not META.verify({"X-Hub-Signature-256": signature(BODY, "")}, BODY, "", now=START)


@given(body=st.binary(max_size=300), place=st.integers(min_value=0), flip=st.integers(min_value=1, max_value=255))
def test_a_body_that_was_changed_is_not_genuine(body: bytes, place: int, flip: int) -> None:
    body = body or b"x"
    changed = bytearray(body)
    changed[place % len(body)] ^= flip
    headers = {"X-Hub-Signature-256": signature(body)}
    assert META.verify(headers, body, SECRET, now=START)
    assert not META.verify(headers, bytes(changed), SECRET, now=START)


async def test_an_unsigned_body_is_refused_unread() -> None:
    assert await ADAPTERS.receive(NAME, "acme", {}, BODY, now=START) == Refused()


# --- the handshake

GOOD = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": "chosen-word"}


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (GOOD, "1158201444"),
        (GOOD | {"hub.verify_token": "another"}, None),
        (GOOD | {"hub.verify_token": ""}, None),
        (GOOD | {"hub.verify_token": "chosen-wor"}, None),
        (GOOD | {"hub.verify_token": "\ud800"}, None),
        (GOOD | {"hub.mode": "unsubscribe"}, None),
        (GOOD | {"hub.challenge": ""}, None),
        (GOOD | {"hub.challenge": "<script>alert(1)</script>"}, None),
        (GOOD | {"hub.challenge": "7" * 1_000}, None),
        ({"hub.mode": "subscribe", "hub.challenge": "1"}, None),
        ({}, None),
    ],
)
async def test_a_handshake_is_answered_only_with_the_word_that_was_chosen(
    query: dict[str, str], answer: str | None
) -> None:
    answered = await ADAPTERS.handshake(NAME, "acme", query)
    assert answered == (Refused() if answer is None else answer)


@pytest.mark.parametrize("secrets", [{}, {"verifyToken": ""}])
def test_without_a_chosen_word_there_is_no_handshake(secrets: Mapping[str, str]) -> None:
    assert META.handshake(GOOD | {"hub.verify_token": ""}, Credentials(secrets)) is None
