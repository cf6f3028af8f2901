"""A key service on this machine, and a world that has it."""

from __future__ import annotations

from typing import Any

import httpx
from starlette.applications import Starlette

from firestore_outbox.local.kms import KmsStandIn
from firestore_outbox.local.provider_urls import LOCAL_KMS_KEY
from firestore_outbox.sealing.envelope import seal_parts
from firestore_outbox.sealing.kms import Kms
from firestore_outbox.sealing.service import Sealing
from tests.calm import Calm

TEXT = {"type": "text", "text": "the planted words, äöü 🦊"}


class LocalKms(Kms):
    """The real client of Cloud KMS, on the stand-in, without a socket."""

    def __init__(self) -> None:
        self.stand_in = KmsStandIn(None)
        app = Starlette(routes=self.stand_in.routes())
        super().__init__("kms", transport=httpx.ASGITransport(app))


def sealing_of(calm: Calm) -> Sealing:
    sealing = calm.world.client.system.sealing
    assert sealing is not None
    return sealing


async def seal_account(calm: Calm, account_id: str = "shop") -> dict[str, Any]:
    """The account's public key."""
    key = await sealing_of(calm).keys.create(account_id, LOCAL_KMS_KEY)
    return {"keyVersion": key.version, "publicKey": key.public_key}


def sealed(request_id: str, key: dict[str, Any], *parts: dict[str, Any], account_id: str = "shop") -> Any:
    return seal_parts(parts or (TEXT,), account_id=account_id, request_id=request_id, key=key)
