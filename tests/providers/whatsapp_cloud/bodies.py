"""Bodies as Meta posts them, and what is read from one."""

from __future__ import annotations

import json
from typing import Any

from firestore_outbox.providers.protocol import InboundMessage, WebhookEvent
from firestore_outbox.providers.whatsapp_cloud.webhook import events_in


def envelope(*values: dict[str, Any], field: str = "messages") -> bytes:
    changes = [{"field": field, "value": {"messaging_product": "whatsapp", **value}} for value in values]
    return json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}]}).encode()


def status(state: str = "sent", **fields: Any) -> dict[str, Any]:
    echo = {"biz_opaque_callback_data": "request-1:0:1"}
    return {"id": "wamid.1", "status": state, "timestamp": "1772366400", "recipient_id": "491", **echo, **fields}


def inbound(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"from": "491", "id": "wamid.2", "timestamp": "1772366400", "type": kind, kind: content, **fields}


def only(event_of: bytes) -> WebhookEvent:
    (event,) = events_in(event_of)
    return event


def read(message: dict[str, Any]) -> tuple[Any, ...]:
    event = only(envelope({"messages": [message]}))
    assert isinstance(event, InboundMessage), event
    return event.parts
