"""Cases: the batch that sends a message, right in every way but one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.rules.actions import (
    Act,
    Case,
    Edit,
    in_both,
    in_message,
    in_outbox,
    in_thread,
    left_out,
    send,
    send_many,
    send_with_a_copy_in,
    stored_as,
    without,
)
from tests.rules.people import AGENT, COLLEAGUE, GUEST, NEWCOMER, OWNER, ROLELESS, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import LONG_AGO, ODD_CONTACT, OLD_CONTACT, TEXT, Draft, Scene

YEAR = timedelta(days=365)
CLIENTS_TIME = datetime(2026, 6, 1, tzinfo=UTC)


def at(name: str, ahead: timedelta) -> Edit:
    """A time from now, and now is when the case runs: not when this table is read."""

    def edit(draft: Draft) -> None:
        in_outbox(**{name: datetime.now(UTC) + ahead})(draft)

    return edit


ALLOWED: dict[str, Act] = {
    "to a new contact": send(),
    "to an old contact": send(to=OLD_CONTACT),
    "to an old contact, and marks the thread as read": send(in_thread(unreadCount=0), to=OLD_CONTACT),
    "to a new contact, and says that nothing is unread": send(in_thread(unreadCount=0)),
    "for later": send(at("nextAttemptAt", timedelta(hours=5))),
    "for nearly a year ahead": send(at("nextAttemptAt", YEAR - timedelta(minutes=1))),
    "with a deadline": send(at("sendBy", timedelta(hours=1))),
    "urgently": send(in_outbox(priority="urgent")),
    "with the priority that it has anyway": send(in_outbox(priority="normal")),
    "behind others": send(in_outbox(priority="bulk")),
    "with nothing to show in the list": send(in_thread(lastMessageText="")),
    "with the longest text to show in the list": send(in_thread(lastMessageText="x" * 200)),
    "to a group": send(to="120363000000000000-15@g.us"),
    "to an address with underscores inside": send(to="group__7_"),
    "with the shortest id": send(request_id=lambda scene: scene.key[:8]),
    "with the longest id": send(request_id=lambda scene: scene.key.ljust(128, "_")),
    "four times in one commit": send_many(4),
}

FIELDS = {
    "message": ("requestId", "accountId", "threadId", "to", "parts", "direction", "status", "createdAt"),
    "outbox": (
        *("requestId", "accountId", "threadId", "to", "parts"),
        *("status", "createdAt", "createdBy", "nextAttemptAt", "attempts"),
    ),
}

OF_THE_WORKER: dict[str, dict[str, Any]] = {
    "outbox": {
        "claimedBy": "w-1",
        "leaseUntil": CLIENTS_TIME,
        "providerMessageId": "p-1",
        "sentAt": CLIENTS_TIME,
        "lastError": {"code": "rejected"},
        "runId": "r-1",
        "targetId": "t-1",
        "expireAt": CLIENTS_TIME,
        "failures": 0,
        "partsSent": 1,
        "doubted": True,
        "series": 1,
        "cancelRequested": True,
    },
    "message": {
        "providerMessageId": "p-1",
        "sentAt": CLIENTS_TIME,
        "deliveredAt": CLIENTS_TIME,
        "readAt": CLIENTS_TIME,
        "failedAt": CLIENTS_TIME,
        "error": {"code": "rejected"},
        "series": 1,
    },
}

_IN = {"message": in_message, "outbox": in_outbox}

BAD_IDS: dict[str, Act] = {
    "an id of 7 characters": send(request_id=lambda scene: scene.key[:7]),
    "an id of 129 characters": send(request_id=lambda scene: scene.key.ljust(129, "x")),
    "an id with a dot": send(request_id=lambda scene: f"{scene.key}.1"),
    "another id in the outbox document than its name": send(in_both(requestId="another-id")),
    "another id in the message than its name": send(in_message(requestId="another-id")),
    "an address with a blank": send(to="+49 151"),
    "an address with a blank, though there is such a thread": send(to=ODD_CONTACT),
    "an address that begins with an underscore": send(to="_1"),
    "an address of 257 characters": send(to="1" * 257),
    "an empty address": send(to=""),
    "an account that does not exist": send(account=lambda scene: f"shop-{scene.key}x"),
    "an account with two underscores": send(account=lambda scene: f"{scene.account}__x"),
    "another account in the message": send(in_message(accountId="other")),
    "another account in the thread": send(in_thread(accountId="other")),
    "another account in the outbox document": send(in_outbox(accountId="other")),
    "another account in message and outbox document": send(in_both(accountId="other")),
    "an account that is no text": send(in_both(accountId=7)),
    "an account with a slash": send(in_both(accountId="a/b"), in_thread(accountId="a/b")),
    "an account of 129 characters": send(account=lambda scene: "a" * 129),
    "another recipient in the message": send(in_message(to="+1")),
    "another recipient in the thread": send(in_thread(to="+1")),
    "another recipient in message and outbox document": send(in_both(to="+1")),
    "another thread in the message": send(in_message(threadId="other__+1")),
    "another thread in the outbox document": send(in_outbox(threadId="other__+1")),
    "another thread in message and outbox document": send(in_both(threadId="other__+1")),
    "other parts in the message": send(in_message(parts=[{"type": "text", "text": "something else"}])),
    "the message in another thread": send(stored_as("message", lambda scene: f"{scene.messages()}/{scene.request_id}")),
    "the message under another id": send(stored_as("message", lambda scene: f"{scene.messages()}/another-id")),
    "the outbox document under another id": send(stored_as("outbox", lambda scene: f"outbox/x{scene.request_id}")),
    "the thread under another name": send(stored_as("thread", lambda scene: f"{scene.thread()}1")),
    "another account's thread": send(
        stored_as("thread", lambda scene: scene.thread(account=scene.other_account)), to=OLD_CONTACT
    ),
    "an id that is taken": send(request_id=lambda scene: scene.own, to=OLD_CONTACT),
    "the id of a message of long ago": send(left_out("message"), request_id=lambda s: s.expired, to=OLD_CONTACT),
    "the id of a message of long ago, written again": send(request_id=lambda s: s.expired, to=OLD_CONTACT),
    "a message for an outbox document of long ago": send(
        left_out("thread", "outbox"), request_id=lambda s: s.of_a_run, to=OLD_CONTACT
    ),
    "an id that is taken in another account": send(request_id=lambda scene: scene.strangers),
}

BAD_VALUES: dict[str, Edit] = {
    "a status other than queued in the outbox document": in_outbox(status="sending"),
    "a status other than queued in the message": in_message(status="sent"),
    "the direction inbound": in_message(direction="inbound"),
    "an attempt behind it": in_outbox(attempts=1),
    "attempts that are no whole number": in_outbox(attempts=0.0),
    "a colleague as author": in_outbox(createdBy=COLLEAGUE),
    "its own time in the outbox document": in_outbox(createdAt=CLIENTS_TIME),
    "its own time in the message": in_message(createdAt=CLIENTS_TIME),
    "its own time in the thread": in_thread(lastMessageAt=CLIENTS_TIME),
    "a time to send at in the past": in_outbox(nextAttemptAt=LONG_AGO),
    "a time to send at more than a year ahead": at("nextAttemptAt", YEAR + timedelta(minutes=1)),
    "a time to send at that is no time": in_outbox(nextAttemptAt="tomorrow"),
    "a deadline that is no time": in_outbox(sendBy="tomorrow"),
    "an unknown priority": in_outbox(priority="high"),
    "a priority that is no text": in_outbox(priority=1),
    "another field in the message": in_message(color="red"),
    "another field in the outbox document": in_outbox(color="red"),
    "parts that are no list": in_both(parts="hello"),
    "parts that are a map": in_both(parts={"0": TEXT}),
}

WITHOUT = {
    "the thread": ("thread",),
    "the message": ("message",),
    "the outbox document": ("outbox",),
    "thread and message": ("thread", "message"),
    "thread and outbox document": ("thread", "outbox"),
}


def _elsewhere(scene: Scene) -> str:
    return f"{scene.messages(OLD_CONTACT)}/{scene.request_id}"


ALONE: dict[str, Act] = {
    # In a batch another document would be wrong as well, and either could be the one that is refused.
    "an account with a slash": send(in_outbox(accountId="a/b"), left_out("thread", "message")),
    "an account with two underscores": send(left_out("thread", "message"), account=lambda s: f"{s.account}__x"),
    "an address with a blank": send(left_out("thread", "message"), to="+49 151"),
    "another thread": send(in_outbox(threadId="other__+1"), left_out("thread", "message")),
    "its own time": send(in_outbox(createdAt=CLIENTS_TIME), left_out("thread", "message")),
    "no parts": send(in_outbox(parts=[]), left_out("thread", "message")),
}

CASES = [
    *(Case(f"an agent sends {how}", AGENT, act, allowed=True) for how, act in ALLOWED.items()),
    Case("an owner sends", OWNER, send(), allowed=True),
    *(
        Case(f"{who} does not send", person, send(), allowed=False)
        for who, person in {
            "a viewer": VIEWER,
            "a member with an unknown role": GUEST,
            "a member without a role": ROLELESS,
            "a member of another account": STRANGER,
            "a user with no account": NEWCOMER,
            "a signed-out user": SIGNED_OUT,
        }.items()
    ),
    Case("a viewer does not send to an old contact", VIEWER, send(to=OLD_CONTACT), allowed=False),
    Case("an agent does not send for another account", AGENT, send(account=lambda s: s.other_account), allowed=False),
    *(
        Case(f"nothing is sent without {what}", AGENT, send(left_out(*documents), to=OLD_CONTACT), allowed=False)
        for what, documents in WITHOUT.items()
    ),
    *(
        Case(f"nothing is sent without {name} in the {document}", AGENT, send(without(document, name)), allowed=False)
        for document, names in FIELDS.items()
        for name in names
    ),
    *(
        Case(f"nothing is sent with {name} in the {document}", AGENT, send(_IN[document](**{name: value})), False)
        for document, fields in OF_THE_WORKER.items()
        for name, value in fields.items()
    ),
    *(Case(f"nothing is sent with {what}", AGENT, act, allowed=False) for what, act in BAD_IDS.items()),
    *(Case(f"nothing is sent with {what}", AGENT, send(edit), False) for what, edit in BAD_VALUES.items()),
    Case(
        "no message is made with its own time",
        AGENT,
        send(in_message(createdAt=CLIENTS_TIME), left_out("thread", "outbox")),
        allowed=False,
    ),
    *(
        Case(f"no outbox document is made by {who}", person, send(left_out("thread", "message")), allowed=False)
        for who, person in {"a viewer": VIEWER, "a member with an unknown role": GUEST}.items()
    ),
    *(Case(f"no outbox document is made with {what}", AGENT, act, allowed=False) for what, act in ALONE.items()),
    Case(
        "nothing is sent when the outbox document alone is of the server's time",
        AGENT,
        send(in_message(createdAt=CLIENTS_TIME), in_thread(lastMessageAt=CLIENTS_TIME)),
        allowed=False,
    ),
    Case("nothing is sent with a copy of the message elsewhere", AGENT, send_with_a_copy_in(_elsewhere), False),
    Case(
        "nothing is sent with a copy of the message elsewhere that says so",
        AGENT,
        send_with_a_copy_in(_elsewhere, threadId=lambda scene: scene.thread().removeprefix("threads/")),
        allowed=False,
    ),
    Case(
        "nothing is sent with a copy of the message in another account",
        AGENT,
        send_with_a_copy_in(
            lambda scene: f"{scene.messages(account=scene.other_account)}/{scene.request_id}",
            threadId=lambda scene: scene.thread(account=scene.other_account).removeprefix("threads/"),
        ),
        allowed=False,
    ),
]
