"""What a case finds: an account with its people and documents, another account that has the same, and names for it all.

Every case has a scene of its own, told apart by a key in all ids: nothing is cleared between cases, and the emulator's
coverage adds up over all of them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.cloud.firestore import SERVER_TIMESTAMP, AsyncClient

from tests.rules.people import AGENT, COLLEAGUE, ROLELESS, ROLES, STRANGER, VIEWER

OLD_CONTACT = "+4915100000000"
"""A person who wrote before: there is a thread, with three unread messages."""
ODD_CONTACT = "+49 777"
"""A person whose thread a careless server made: an address has no blanks."""
NEW_CONTACT = "+4915199999999"
TEXT = {"type": "text", "text": "hello"}
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Scene:
    key: str = field(default_factory=lambda: secrets.token_hex(6))

    @property
    def account(self) -> str:
        return f"shop-{self.key}"

    @property
    def other_account(self) -> str:
        """The stranger's."""
        return f"other-{self.key}"

    @property
    def request_id(self) -> str:
        """Free, for a new message."""
        return f"new-{self.key}"

    @property
    def own(self) -> str:
        """A message that the agent wrote, and that is queued."""
        return f"own-{self.key}"

    @property
    def colleagues(self) -> str:
        return f"colleagues-{self.key}"

    @property
    def viewers(self) -> str:
        """Written by a member who was an agent then, and is a viewer now."""
        return f"viewers-{self.key}"

    @property
    def of_a_run(self) -> str:
        """Written by the worker: it has no author, and no message before it is sent."""
        return f"run-{self.key}"

    @property
    def strangers(self) -> str:
        return f"strangers-{self.key}"

    @property
    def expired(self) -> str:
        """Sent long ago: the message is there, its outbox document is not any more."""
        return f"expired-{self.key}"

    def thread(self, to: str = OLD_CONTACT, account: str | None = None) -> str:
        return f"threads/{account or self.account}__{to}"

    def messages(self, to: str = OLD_CONTACT, account: str | None = None) -> str:
        return f"{self.thread(to, account)}/messages"

    def documents(self) -> dict[str, dict[str, Any]]:
        """All that is there before the case begins."""
        there: dict[str, dict[str, Any]] = {}
        for account in (self.account, self.other_account):
            there[f"accounts/{account}"] = {"provider": "simulated", "status": "active"}
            there[f"accounts/{account}/uploads/media-1"] = {"handle": "h"}
            there[f"accounts/{account}/fetches/message-1"] = {"attempts": 0}
            there[f"accounts/{account}/incoming/media-1"] = {"url": "https://storage.test/session"}
            there[f"accounts/{account}/suppressed/{OLD_CONTACT}"] = {"address": OLD_CONTACT, "because": "asked"}
            there[f"accounts/{account}/notifications/n-1"] = {"title": "1 of 1 delivered", "createdAt": LONG_AGO}
            there[f"accounts/{account}/frequency/491"] = {"counted": []}
            there[f"accounts/{account}/keys/1"] = {"version": 1, "wrappedKey": "w"}
            there[f"accounts/{account}/billing/state"] = {"customer": "cus_1", "customerKey": "k"}
            there[self.thread(account=account)] = {
                "accountId": account,
                "to": OLD_CONTACT,
                "lastMessageAt": LONG_AGO,
                "lastMessageText": "are you there?",
                "unreadCount": 3,
            }
            there[f"{self.messages(account=account)}/inbound-1"] = {"direction": "inbound", "accountId": account}
            there[f"lanes/outbox:{account}"] = {"state": "idle", "fence": 1}
            there[f"sessions/{account}"] = {"provider": "simulated"}
            there[f"reminders/{account}/targets/000000"] = {"targets": [{"to": OLD_CONTACT}]}
            there[f"runs/{account}"] = {"accountId": account, "status": "running"}
            there[f"reminders/{account}"] = {"accountId": account, "status": "active"}
            for parent in ("runs", "reminders"):
                asked = {"action": "pause", "createdBy": AGENT, "createdAt": LONG_AGO, "askedAt": LONG_AGO}
                there[f"{parent}/{account}/requests/request-0"] = asked
        there[self.thread(ODD_CONTACT)] = {"accountId": self.account, "to": ODD_CONTACT}
        for uid, role in ROLES.items():
            there[f"accounts/{self.account}/members/{uid}"] = {"uid": uid, "role": role}
        there[f"accounts/{self.account}/members/{ROLELESS}"] = {"since": LONG_AGO}
        there[f"accounts/{self.other_account}/members/{STRANGER}"] = {"uid": STRANGER, "role": "owner"}
        device = {"uid": AGENT, "token": "t", "createdAt": LONG_AGO}
        there[f"accounts/{self.account}/devices/device-of-agent"] = device
        there[f"limits/{self.key}"] = {"perSecond": 3}
        there[f"media/{self.key}"] = {"mimeType": "image/png"}
        for request_id, author, account in (
            (self.own, AGENT, self.account),
            (self.colleagues, COLLEAGUE, self.account),
            (self.viewers, VIEWER, self.account),
            (self.of_a_run, None, self.account),
            (self.strangers, STRANGER, self.other_account),
        ):
            there |= _queued(request_id, author, account)
        there |= _queued(self.expired, AGENT, self.account)
        del there[f"outbox/{self.expired}"]
        del there[f"{self.messages()}/{self.of_a_run}"]
        return there

    async def set_up(self, client: AsyncClient) -> None:
        batch = client.batch()
        for path, data in self.documents().items():
            batch.set(client.document(path), data)
        await batch.commit()


def _queued(request_id: str, author: str | None, account: str) -> dict[str, dict[str, Any]]:
    draft = Draft.of(request_id, account, OLD_CONTACT, author)
    assert draft.message is not None
    assert draft.outbox is not None
    times = {"createdAt": LONG_AGO}
    entry = {**draft.outbox, **times, "nextAttemptAt": LONG_AGO}
    if author is None:
        del entry["createdBy"]
    return {draft.paths["message"]: {**draft.message, **times}, draft.paths["outbox"]: entry}


@dataclass
class Draft:
    """The three documents of a message that is about to be sent. A case changes one thing in it."""

    paths: dict[str, str]
    thread: dict[str, Any] | None
    message: dict[str, Any] | None
    outbox: dict[str, Any] | None

    @classmethod
    def of(cls, request_id: str, account: str, to: str, author: str | None) -> Draft:
        thread_id = f"{account}__{to}"
        ids = {"requestId": request_id, "accountId": account, "threadId": thread_id, "to": to, "parts": [TEXT]}
        return cls(
            paths={
                "thread": f"threads/{thread_id}",
                "message": f"threads/{thread_id}/messages/{request_id}",
                "outbox": f"outbox/{request_id}",
            },
            thread={
                "accountId": account,
                "to": to,
                "lastMessageAt": SERVER_TIMESTAMP,
                "lastMessageText": "hello",
            },
            message={**ids, "direction": "outbound", "status": "queued", "createdAt": SERVER_TIMESTAMP},
            outbox={
                **ids,
                "status": "queued",
                "createdAt": SERVER_TIMESTAMP,
                "createdBy": author,
                "nextAttemptAt": SERVER_TIMESTAMP,
                "attempts": 0,
            },
        )

    def write(self, batch: Any, client: AsyncClient) -> None:
        """As a client does: the thread is merged into what is there, the others are set."""
        for document in ("thread", "message", "outbox"):
            data = getattr(self, document)
            if data is not None:
                batch.set(client.document(self.paths[document]), data, merge=document == "thread")
