"""Documents that the console's actions and pages are about."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.system.console.conftest import UIDS, World


async def outbox_document(world: World, account_id: str, status: str, text: str = "Hello") -> str:
    """A message that no worker touches: it is due in a year."""
    request_id = f"m-{secrets.token_hex(8)}"
    now = datetime.now(UTC)
    fields: dict[str, Any] = {
        "requestId": request_id,
        "accountId": account_id,
        "threadId": f"{account_id}__+491511234567",
        "to": "+491511234567",
        "parts": [{"type": "text", "text": text}],
        "status": status,
        "createdAt": now,
        "createdBy": UIDS["owner"],
        "attempts": 0 if status == "queued" else 1,
    }
    outbox = fields if status == "uncertain" else {**fields, "nextAttemptAt": now + timedelta(days=365)}
    shown = {**fields, "direction": "outbound", "status": "failed" if status == "failed" else "queued"}
    await world.firestore.document(f"threads/{account_id}__+491511234567/messages/{request_id}").set(shown)
    await world.firestore.document(f"outbox/{request_id}").set(outbox)
    return request_id


async def run_document(world: World, account_id: str, text: str = "Hello") -> str:
    run_id, now = f"run-{secrets.token_hex(8)}", datetime.now(UTC)
    fields = {
        "runId": run_id,
        "accountId": account_id,
        "parts": [{"type": "text", "text": text}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "onWindowEnd": "stop",
        "fireAt": now,
        "windowEndAt": now + timedelta(days=1),
        "status": "partial",
        "expanded": True,
        "total": 0,
        "createdAt": now,
    }
    await world.firestore.document(f"runs/{run_id}").set(fields)
    return run_id


async def reminder_document(world: World, account_id: str, text: str = "Hello") -> str:
    reminder_id = f"reminder-{secrets.token_hex(8)}"
    fields = {
        "accountId": account_id,
        "parts": [{"type": "text", "text": text}],
        "targets": [{"id": "t1", "to": "+491511234567"}],
        "createdAt": datetime.now(UTC),
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": datetime.now(UTC) + timedelta(days=365)},
        "status": "active",
    }
    await world.firestore.document(f"reminders/{reminder_id}").set(fields)
    return reminder_id


async def job_document(world: World, text: str = "Hello") -> str:
    name = f"job-{secrets.token_hex(8)}"
    fields = {"kind": "nextup", "key": "ann", "events": ["e1"], "error": text, "at": datetime.now(UTC)}
    await world.firestore.document(f"jobs/{name}").set(fields)
    return name
