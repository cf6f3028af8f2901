"""What WAHA says: its answers, its errors and its webhooks.

In WAHA's words the core's refusals become:

    throttled                                429
    unauthorized, account_blocked            401, 403
    session_down                             404 where it is stopped; otherwise 422
    invalid_message, rejected, media_missing 400
    recipient_invalid, window_closed         500 around WhatsApp's own error 463
    overloaded, internal                     503, 500
    an apiCode                               500 around that error of WhatsApp's

Each 500 quotes the whole request, as the real one does.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal

ACKS: dict[str, tuple[int, str]] = {
    "failed": (-1, "ERROR"),
    "pending": (0, "PENDING"),
    "sent": (1, "SERVER"),
    "delivered": (2, "DEVICE"),
    "read": (3, "READ"),
    "played": (4, "PLAYED"),
}


class WahaForm:
    """What WAHA posts."""

    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        at = datetime.fromisoformat(event["at"])
        match event["type"]:
            case "receipt":
                name, payload = _ack(event)
            case "inbound":
                name, payload = "message", _message(event, at)
            case _:
                status = {"up": "WORKING", "down": "FAILED"}.get(event["status"], event["status"])
                name, payload = "session.status", {"name": account_id, "status": status}
        told = json.dumps(payload, sort_keys=True) + name + event["at"]
        envelope = {
            "id": "evt_" + hashlib.sha256(told.encode()).hexdigest()[:26],
            "timestamp": int(at.timestamp() * 1000),
            "event": name,
            "session": account_id,
            "me": {"id": "10000000000@c.us", "pushName": "simulator"},
            "payload": payload,
            "engine": "GOWS",
            "environment": {"version": "2026.7.1", "engine": "GOWS", "tier": "PLUS"},
        }
        return json.dumps(envelope).encode()

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        return {
            "X-Webhook-Request-Id": hashlib.sha256(body).hexdigest()[:32],
            "X-Webhook-Timestamp": str(int(at.timestamp() * 1000)),
            "X-Webhook-Hmac-Algorithm": "sha512",
            "X-Webhook-Hmac": hmac.new(secret.encode(), body, hashlib.sha512).hexdigest(),
        }


def _ack(event: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    chat = _chat(event.get("to", ""))
    ack, ack_name = ACKS[event["status"]]
    payload: dict[str, Any] = {
        "id": f"true_{chat}_{event['providerMessageId']}",
        "from": "10000000000@c.us",
        "to": chat,
        "fromMe": True,
        "ack": ack,
        "ackName": ack_name,
    }
    if not chat.endswith("@g.us"):
        return "message.ack", payload
    payload |= {"id": f"{payload['id']}_20000000000@c.us", "participant": "20000000000@c.us"}
    return "message.ack.group", payload


def _message(event: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    chat = _chat(event["from"])
    texts = [part["text"] for part in event["parts"] if part.get("type") == "text"]
    files = [part for part in event["parts"] if part.get("type") == "media"]
    payload: dict[str, Any] = {
        "id": f"false_{chat}_{event['providerMessageId']}",
        "timestamp": int(at.timestamp()),
        "from": chat,
        "fromMe": False,
        "to": "10000000000@c.us",
        "body": "".join(texts) or (files[0].get("caption") or "" if files else ""),
        "hasMedia": bool(files),
        "media": None,
        "ack": 2,
        "ackName": "DEVICE",
        "source": "app",
    }
    if files:
        payload["media"] = {
            "url": f"http://localhost:3000/api/files/{files[0]['mediaId']}",
            "mimetype": files[0]["mimeType"],
            "filename": files[0].get("filename"),
        }
    if chat.endswith("@g.us"):
        payload["participant"] = "20000000000@c.us"
    return payload


def _chat(address: str) -> str:
    return address if "@" in address else f"{address.lstrip('+')}@c.us"


@dataclass(frozen=True)
class WahaApi(WahaForm):
    """The words for one call, which an error quotes."""

    path: str = ""
    request: Any = None
    chat: str = ""
    text: str = ""

    def new_message_id(self, random: Random) -> str:
        return f"3EB0{random.getrandbits(72):018X}"

    def accepted(self, asked: Asked, identity: str) -> Answer:
        body = {
            "id": f"true_{self.chat}_{identity}",
            "timestamp": 0,
            "from": "10000000000@c.us",
            "fromMe": True,
            "to": self.chat,
            "body": self.text,
            "hasMedia": self.path != "/api/sendText",
            "ack": 1,
            "ackName": "SERVER",
        }
        return Answer(status=201, body=body)

    def refused(self, refusal: Refusal) -> Answer:
        if refusal.api_code is not None:
            return self._failed(f"server returned error {refusal.api_code}")
        match refusal.error:
            case "throttled":
                seconds = refusal.retry_after_seconds
                return Answer(status=429, body=nest(429, "Too Many Requests"), retry_after_seconds=seconds)
            case "unauthorized":
                return Answer(status=401, body=nest(401, "Unauthorized"))
            case "account_blocked":
                return Answer(status=403, body=nest(403, "Forbidden"))
            case "session_down":
                return _not_working(self.request.get("session", ""), refusal.detail or "FAILED")
            case "recipient_invalid" | "window_closed":
                return self._failed("server returned error 463")
            case "overloaded":
                return Answer(status=503, body=nest(503, "Service Unavailable"))
            case "internal":
                return self._failed("Something went wrong")
            case _:
                return Answer(status=400, body=nest(400, [refusal.detail or refusal.error], "Bad Request"))

    def _failed(self, words: str) -> Answer:
        body = {
            "statusCode": 500,
            "timestamp": "2026-03-01T12:00:00.000Z",
            "exception": {"message": f"2 UNKNOWN: {words}", "code": 2, "details": words, "name": "Error"},
            "request": {"path": self.path, "method": "POST", "body": self.request, "query": {}},
            "version": {"version": "2026.7.1", "engine": "GOWS", "tier": "PLUS"},
        }
        return Answer(status=500, body=body)


def nest(status: int, message: str | list[str], error: str | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"statusCode": status, "message": message}
    return body if error is None else body | {"error": error}


def _not_found(name: str) -> dict[str, Any]:
    sentence = f"We didn't find a session with name '{name}'."
    return nest(404, f"{sentence}\nPlease start it first by using POST /api/sessions/{name}/start request", "Not Found")


def _not_working(name: str, status: str) -> Answer:
    if status == "STOPPED":
        return Answer(status=404, body=_not_found(name))
    words = "Session status is not as expected. Try again later or restart the session"
    return Answer(status=422, body={"error": words, "session": name, "status": status, "expected": ["WORKING"]})


API = WahaApi()
