"""An event for one of your handlers, written inside the caller's own batch or transaction.

    batch = db.batch()
    batch.update(order, {"paid": True})
    poke(batch, db, "invoices", key="customer-7", data={"order": order.id})
    batch.commit()

The handler of that kind runs for the key once it was quiet for a while: after the commit, and only if it succeeded.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from google.cloud import firestore

from firestore_outbox.backend.batch import Batch, Client, require_batch

LONGEST_KEY = 700


def poke(
    batch: Batch,
    db: Client,
    kind: str,
    key: str,
    *,
    data: Mapping[str, Any] | None = None,
    event_id: str | None = None,
) -> str:
    """Add an event. Returns its id.

    event_id: one id for one event, so that a repeated call adds nothing: it gets `AlreadyExists` at commit. None takes
    a new one."""
    require_batch(batch)
    if not kind or not key or len(key) > LONGEST_KEY or "/" in kind + key or ":" in kind:
        raise ValueError(f"a kind and a key of 1 to {LONGEST_KEY} characters without slashes are needed")
    name = event_id or str(uuid.uuid4())
    event = db.collection("inbox").document(f"{kind}:{key}").collection("events").document(name)
    batch.create(event, {"data": dict(data or {}), "at": firestore.SERVER_TIMESTAMP})
    return name
