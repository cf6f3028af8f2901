"""A file on the whole product, each part a process: added by the command, sent by the worker, taken by the provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from tests.cli.support import FREE_PORTS, Stack, dev, outbox
from tests.patience import PATIENCE_SECONDS

COUNT = 5


def send_picture(stack: Stack, account_id: str, media_id: str, number: int) -> str:
    """As a frontend does it."""
    request_id, to = f"{account_id}-{number}", f"+49170{number}"
    thread_id = f"{account_id}__{to}"
    parts = [{"type": "media", "mediaId": media_id, "mimeType": "image/png", "caption": "look"}]
    common: dict[str, Any] = {
        "requestId": request_id,
        "accountId": account_id,
        "threadId": thread_id,
        "to": to,
        "parts": parts,
        "status": "queued",
        "createdAt": firestore.SERVER_TIMESTAMP,
    }
    with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
        patch.setenv("FIRESTORE_EMULATOR_HOST", stack.addresses["FIRESTORE_EMULATOR_HOST"])
        client = firestore.Client(project="demo-outbox", credentials=AnonymousCredentials())
    batch = client.batch()
    batch.set(client.document(f"threads/{thread_id}"), {"accountId": account_id, "to": to}, merge=True)
    batch.create(client.document(f"threads/{thread_id}/messages/{request_id}"), {**common, "direction": "outbound"})
    outbox_fields = {"nextAttemptAt": firestore.SERVER_TIMESTAMP, "attempts": 0, "createdBy": "u"}
    batch.create(client.document(f"outbox/{request_id}"), {**common, **outbox_fields})
    batch.commit()
    client.close()
    return request_id


def test_a_picture_that_was_added_by_the_command_reaches_the_provider_once(tmp_path: Path) -> None:
    data, picture = tmp_path / "data", tmp_path / "cat.png"
    picture.write_bytes(bytes(range(256)) * 4000)
    with dev(*FREE_PORTS, f"--data={data}") as stack:
        account_id = stack.account()
        where: dict[str, str | None] = {"OUTBOX_MEDIA_DIR": str(data / "media")}
        added = outbox("media", "add", str(picture), "--account", account_id, env=where)
        sent = [send_picture(stack, account_id, added.out.strip(), number) for number in range(COUNT)]
        for request_id in sent:
            stack.becomes(request_id, "sent")
        missing = send_picture(stack, account_id, "nowhere", COUNT)
        failed = stack.becomes(missing, "failed")
        (upload,) = httpx.get(
            f"{stack.addresses['provider']}/_sim/media", trust_env=False, timeout=PATIENCE_SECONDS
        ).json()
        assert (upload["accountId"], upload["bytes"], upload["accepted"]) == (account_id, 1_024_000, True)
        assert sorted(stack.calls(account_id)) == sent
        assert failed["lastError"]["code"] == "media_missing"
