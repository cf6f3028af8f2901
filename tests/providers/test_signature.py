"""Signed webhooks: genuine, forged, stale; and what a caller may do with each."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.local.simulators import webhooks as simulator_side
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, FixedCredentials
from firestore_outbox.providers.registry import MAX_WEBHOOK_BYTES, Providers, Received, Refused, TryLater
from firestore_outbox.providers.signature import is_genuine, signed
from firestore_outbox.providers.simulated.adapter import SIGNATURE_HEADER
from tests.providers.support import CREDENTIALS, START, OutOfReach

BODY = b'{"events": []}'
SECRET = "s3cret"


def test_a_genuine_signature_is_taken() -> None:
    assert is_genuine(signed(BODY, SECRET, START), BODY, SECRET, START)


def test_adapter_and_simulator_sign_alike() -> None:
    assert signed(BODY, SECRET, START) == simulator_side.signed(SECRET, BODY, START)
    assert SIGNATURE_HEADER == simulator_side.SIGNATURE_HEADER


@pytest.mark.parametrize(("seconds", "taken"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_a_signature_is_good_for_five_minutes_in_either_direction(seconds: int, taken: bool) -> None:
    now = START + timedelta(seconds=seconds)
    assert is_genuine(signed(BODY, SECRET, START), BODY, SECRET, now) is taken


def test_another_body_another_secret_and_another_time_are_refused() -> None:
    header = signed(BODY, SECRET, START)
    assert not is_genuine(header, BODY + b" ", SECRET, START)
    assert not is_genuine(header, BODY, "other", START)
    later = header.replace(str(int(START.timestamp())), str(int(START.timestamp()) + 1))
    assert not is_genuine(later, BODY, SECRET, START)


def test_an_empty_secret_signs_nothing() -> None:
    assert not is_genuine(signed(BODY, "", START), BODY, "", START)


def test_while_a_secret_is_replaced_one_of_two_signatures_is_enough() -> None:
    old, new = signed(BODY, "old", START), signed(BODY, "new", START)
    both = f"{old},{new.partition(',')[2]}"
    assert is_genuine(both, BODY, "old", START)
    assert is_genuine(both, BODY, "new", START)
    assert not is_genuine(both, BODY, "third", START)


@given(st.text() | st.from_regex(r"t=\d{0,15}(,v1=[0-9a-fé]{0,70})*"))
def test_no_header_whatever_raises_or_passes(header: str) -> None:
    assert not is_genuine(header, BODY, SECRET, START)


# --- verify, then parse


def adapters() -> Providers:
    return providers(ProviderSettings(), credentials=FixedCredentials({"acme": {WEBHOOK_SECRET: SECRET}}))


async def receive(headers: dict[str, str], *, account: str = "acme", name: str = "simulated") -> object:
    return await adapters().receive(name, account, headers, BODY, now=START)


@pytest.mark.parametrize("header", ["X-Simulated-Signature", "x-simulated-signature", "X-SIMULATED-SIGNATURE"])
async def test_a_signed_webhook_is_received_however_its_header_is_written(header: str) -> None:
    assert await receive({"Other": "x", header: signed(BODY, SECRET, START)}) == Received(events=())


async def test_an_unsigned_or_doubly_signed_webhook_is_refused() -> None:
    good = signed(BODY, SECRET, START)
    assert await receive({}) == Refused()
    assert await receive({"X-Simulated-Signature": ""}) == Refused()
    assert await receive({"X-Simulated-Signature": good, "x-simulated-signature": good}) == Refused()


async def test_one_accounts_secret_does_not_sign_for_another_nor_for_an_unknown_provider() -> None:
    headers = {SIGNATURE_HEADER: signed(BODY, SECRET, START)}
    assert await receive(headers, account="other") == Refused()
    assert await receive(headers, name="unheard-of") == Refused()


async def test_a_body_beyond_the_limit_is_refused_unread() -> None:
    body = b" " * (MAX_WEBHOOK_BYTES + 1)
    secret = (await CREDENTIALS.resolve("acme")).get(WEBHOOK_SECRET) or ""
    it = providers(ProviderSettings(), credentials=CREDENTIALS)
    headers = {SIGNATURE_HEADER: signed(body, secret, START)}
    assert await it.receive("simulated", "acme", headers, body, now=START) == Refused()


async def test_while_secrets_are_out_of_reach_the_provider_is_asked_to_try_later() -> None:
    it = providers(ProviderSettings(), credentials=OutOfReach())
    assert await it.receive("simulated", "acme", {}, BODY, now=START) == TryLater()
