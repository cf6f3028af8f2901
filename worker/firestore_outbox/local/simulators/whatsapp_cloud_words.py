"""How Meta words it: answers, refusals with their codes, and webhooks with their signature.

The signature is written here on its own, and not taken from the adapter: a simulator that shared the code could not
find an error in it. The same goes for the codes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Any

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal

NAME = "whatsapp_cloud"
SIGNATURE_HEADER = "X-Hub-Signature-256"

THROTTLES = {"account": 130429, "recipient": 131056, "app": 4}
CODES: Mapping[str, int] = {
    "overloaded": 131016,
    "rejected": 132007,
    "invalid_message": 100,
    "unauthorized": 190,
    "account_blocked": 368,
    "session_down": 131016,
    "recipient_invalid": 131026,
    "media_missing": 131053,
    "media_expired": 131053,
    "window_closed": 131047,
}
"""Meta's code for each refusal that can be ordered. "internal" has none: that is what makes it one."""

TITLES: Mapping[int, str] = {
    4: "Application request limit reached",
    100: "Invalid parameter",
    190: "Error validating access token",
    368: "Temporarily blocked for policies violations",
    130429: "Rate limit hit",
    131016: "Service unavailable",
    131026: "Message undeliverable",
    131047: "Re-engagement message",
    131053: "Media upload error",
    131056: "(Business Account, Consumer Account) pair rate limit hit",
    132007: "Template character policy violated",
}
STATUSES: Mapping[int, int] = {190: 401, 0: 401, 10: 403, 368: 403, 130429: 429, 131016: 503, 1: 500, 2: 503}
"""The HTTP status beside a code; 400 for all others. Do not rely on it."""
MEDIA_FIELDS = {"mediaId": "id", "mimeType": "mime_type", "caption": "caption", "filename": "filename"}


def fault_answer(code: int, detail: str | None) -> Answer:
    return Answer(status=STATUSES.get(code, 400), body={"error": _error(code, detail)})


def _error(code: int, detail: str | None) -> dict[str, Any]:
    title = TITLES.get(code, "Something is wrong")
    return {
        "message": f"(#{code}) {title}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": detail or title},
        "fbtrace_id": "Asimulated",
    }


class WhatsAppCloudApi:
    def new_message_id(self, random: Random) -> str:
        """As Meta's are: base64, slashes and all."""
        return f"wamid.{base64.b64encode(random.randbytes(28)).decode()}"

    def accepted(self, asked: Asked, identity: str) -> Answer:
        body = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": asked.to, "wa_id": asked.to.removeprefix("+")}],
            "messages": [{"id": identity}],
        }
        return Answer(status=200, body=body)

    def refused(self, refusal: Refusal) -> Answer:
        if refusal.api_code is not None and refusal.api_code.isdigit():
            return fault_answer(int(refusal.api_code), refusal.detail)
        if refusal.error == "internal":
            return Answer(status=500, body={"error": {"message": "An unknown error has occurred.", "type": "Unknown"}})
        code = THROTTLES[refusal.scope] if refusal.error == "throttled" else CODES[refusal.error]
        return fault_answer(code, refusal.detail)

    # Webhooks

    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        metadata = {"display_phone_number": "15550100", "phone_number_id": account_id}
        value: dict[str, Any] = {"messaging_product": "whatsapp", "metadata": metadata}
        field = "messages"
        match event["type"]:
            case "receipt":
                value["statuses"] = [_status(event)]
            case "inbound":
                value["contacts"] = [{"profile": {"name": "A person"}, "wa_id": event["from"]}]
                value["messages"] = list(_messages(event))
            case _:  # Meta knows no sessions: something else that happens to an account
                field, value = "account_update", {"event": "ACCOUNT_UPDATE"}
        changes = [{"field": field, "value": value}]
        entry = {"id": "102290129340398", "changes": changes}
        return json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {SIGNATURE_HEADER: f"sha256={mac}"}


API = WhatsAppCloudApi()


def _status(event: Mapping[str, Any]) -> dict[str, Any]:
    status: dict[str, Any] = {
        "id": event["providerMessageId"],
        "status": event["status"],
        "timestamp": _seconds(event),
        "recipient_id": event.get("to", ""),
    }
    if "echo" in event:
        status["biz_opaque_callback_data"] = event["echo"]
    if event["status"] in ("sent", "delivered"):
        status["conversation"] = {"id": "c0nversation", "origin": {"type": "utility"}}
        status["pricing"] = {"billable": True, "pricing_model": "PMP", "category": "utility"}
    if event["status"] == "failed":
        status["errors"] = [_failure(event.get("error", {}))]
    return status


def _failure(error: Mapping[str, Any]) -> dict[str, Any]:
    named = str(error.get("apiCode", ""))
    code = int(named) if named.isdigit() else CODES.get(str(error.get("code")), 131000)
    title = TITLES.get(code, "Something went wrong")
    return {"code": code, "title": title, "message": title, "error_data": {"details": title}}


def _messages(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One for each part, as people send them."""
    for number, part in enumerate(event["parts"]):
        identity = event["providerMessageId"]
        yield {
            "from": event["from"],
            "id": identity if number == 0 else f"{identity}.{number}",
            "timestamp": _seconds(event),
            **_content(part),
        }


def _content(part: Mapping[str, Any]) -> dict[str, Any]:
    """Text and media as they are in our own form; anything else, such as a button, in Meta's."""
    match part.get("type"):
        case "text":
            return {"type": "text", "text": {"body": part.get("text")}}
        case "media":
            kind = _kind(str(part.get("mimeType", "")))
            content = {theirs: part[ours] for ours, theirs in MEDIA_FIELDS.items() if ours in part}
            digest = base64.b64encode(hashlib.sha256(str(part.get("mediaId")).encode()).digest()).decode()
            return {"type": kind, kind: content | {"sha256": digest}}
        case _:
            return dict(part)


def _kind(mime_type: str) -> str:
    if mime_type.startswith("image/webp"):
        return "sticker"
    family = mime_type.partition("/")[0]
    return family if family in ("image", "video", "audio") else "document"


def _seconds(event: Mapping[str, Any]) -> str:
    return str(int(datetime.fromisoformat(event["at"]).timestamp()))
