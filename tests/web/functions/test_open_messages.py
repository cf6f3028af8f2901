"""`POST /v1/messages:open`: only members of a sealed account read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.local.provider_urls import LOCAL_KMS_KEY
from firestore_outbox.sealing.envelope import Reason, seal_parts
from firestore_outbox.sealing.keys import Keys
from firestore_outbox.sealing.service import Sealing
from tests.sealing.support import TEXT, LocalKms
from tests.web.functions.calling import call, prepared
from tests.web.service.support import Service, now


@pytest.fixture
def kms() -> LocalKms:
    return LocalKms()


@pytest.fixture
async def key(service: Service, kms: LocalKms, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The public key of `shop`, on an instance that has a key service."""
    await prepared(service, monkeypatch)
    sealing = Sealing(Keys(service.system.gateway, kms), kms, now, kms_key=LOCAL_KMS_KEY)
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(replace(service.system, sealing=sealing))
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    made = await sealing.keys.create("shop", LOCAL_KMS_KEY)
    return {"keyVersion": made.version, "publicKey": made.public_key}


def sealed(key: dict[str, Any], message_id: str = "request-1", account_id: str = "shop") -> dict[str, Any]:
    parts = seal_parts([TEXT], account_id=account_id, request_id=message_id, key=key)
    return {"messageId": "request-1", "parts": parts}


async def opened(*messages: Any, uid: str | None = "vic", account_id: str = "shop") -> httpx.Response:
    body = {"accountId": account_id, "messages": list(messages)}
    return await call("open_messages", "POST", "/v1/messages:open", body, uid=uid)


@pytest.mark.parametrize("uid", ["olga", "ann", "vic"])
async def test_each_member_reads(key: dict[str, Any], uid: str) -> None:
    answer = await opened(sealed(key), uid=uid)
    assert (answer.status_code, answer.json()) == (200, {"messages": [{"messageId": "request-1", "parts": [TEXT]}]})


async def test_a_stranger_reads_nothing_and_the_key_service_is_not_asked(key: dict[str, Any], kms: LocalKms) -> None:
    before = kms.stand_in.calls
    assert (await opened(sealed(key), uid="stranger")).status_code == 403
    assert (await opened(sealed(key), uid=None)).status_code == 401
    assert kms.stand_in.calls == before


async def test_a_member_of_one_account_opens_nothing_of_another(key: dict[str, Any]) -> None:
    """The ciphertext of another account, however a member came by it."""
    answer = await opened(sealed(key, account_id="other"))
    (part,) = answer.json()["messages"][0]["parts"]
    assert part == {"type": "sealed", "error": Reason.OTHER_ACCOUNT.value}


async def test_a_part_that_does_not_open_says_why_and_the_others_are_read(key: dict[str, Any]) -> None:
    malformed = {"messageId": "request-2", "parts": [{"type": "sealed", "keyVersion": "x"}, TEXT]}
    answer = await opened(sealed(key, "request-9"), malformed, sealed(key))
    first, second, third = (message["parts"] for message in answer.json()["messages"])
    assert first == [{"type": "sealed", "error": Reason.OTHER_MESSAGE.value}]
    assert second == [{"type": "sealed", "error": Reason.MALFORMED.value}, TEXT]
    assert third == [TEXT]


@pytest.mark.parametrize(
    "messages", ["", [], [None], [{"messageId": 7, "parts": []}], [{"messageId": "m", "parts": ["x"]}], [{}] * 101]
)
async def test_a_malformed_body_is_refused(key: dict[str, Any], messages: Any) -> None:
    body = {"accountId": "shop", "messages": messages}
    assert (await call("open_messages", "POST", "/v1/messages:open", body)).status_code == 400


async def test_while_the_key_service_is_out_of_reach_the_answer_says_try_again(
    key: dict[str, Any], kms: LocalKms
) -> None:
    kms._base = "http://kms/nowhere"
    answer = await opened(sealed(key))
    assert answer.status_code == 503
    assert "try again" in answer.json()["error"]
