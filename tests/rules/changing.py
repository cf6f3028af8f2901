"""Cases: what may happen to documents that are there: a cancel, a thread marked as read, and nothing else."""

from __future__ import annotations

from typing import Any

from google.cloud.firestore import DELETE_FIELD, SERVER_TIMESTAMP

from tests.rules.actions import Case, Path, cancel, delete, update, write
from tests.rules.people import AGENT, COLLEAGUE, GUEST, NEWCOMER, OWNER, SIGNED_OUT, STRANGER, VIEWER
from tests.rules.scene import Scene
from tests.rules.sending import CLIENTS_TIME, OF_THE_WORKER


def own(scene: Scene) -> str:
    return f"outbox/{scene.own}"


def own_message(scene: Scene) -> str:
    return f"{scene.messages()}/{scene.own}"


def thread(scene: Scene) -> str:
    return scene.thread()


def missing(scene: Scene) -> str:
    return f"outbox/{scene.request_id}"


CANCELS: dict[str, tuple[str | None, Path, bool]] = {
    "an agent cancels what they wrote": (AGENT, own, True),
    "an owner cancels what an agent wrote": (OWNER, own, True),
    "an owner cancels what a run wrote": (OWNER, lambda scene: f"outbox/{scene.of_a_run}", True),
    "an agent does not cancel what a colleague wrote": (AGENT, lambda scene: f"outbox/{scene.colleagues}", False),
    "an agent does not cancel what a run wrote": (AGENT, lambda scene: f"outbox/{scene.of_a_run}", False),
    "a colleague does not cancel what an agent wrote": (COLLEAGUE, own, False),
    "a viewer does not cancel": (VIEWER, own, False),
    "a viewer does not cancel what they wrote as an agent": (VIEWER, lambda scene: f"outbox/{scene.viewers}", False),
    "a member with an unknown role does not cancel": (GUEST, own, False),
    "a member of another account does not cancel": (STRANGER, own, False),
    "a user with no account does not cancel": (NEWCOMER, own, False),
    "a signed-out user does not cancel": (SIGNED_OUT, own, False),
    "an owner does not cancel in another account": (OWNER, lambda scene: f"outbox/{scene.strangers}", False),
}

READS: dict[str, tuple[str | None, bool]] = {
    "an owner marks a thread as read": (OWNER, True),
    "an agent marks a thread as read": (AGENT, True),
    "a viewer does not mark a thread as read": (VIEWER, False),
    "a member of another account does not mark a thread as read": (STRANGER, False),
    "a signed-out user does not mark a thread as read": (SIGNED_OUT, False),
}

OTHER_FIELDS_OF_THE_OUTBOX: dict[str, Any] = {
    **OF_THE_WORKER["outbox"],
    "status": "sent",
    "attempts": 7,
    "nextAttemptAt": CLIENTS_TIME,
    "requestId": "another-id",
    "accountId": "other",
    "threadId": "other__+1",
    "to": "+1",
    "parts": [{"type": "text", "text": "something else"}],
    "createdAt": SERVER_TIMESTAMP,
    "createdBy": OWNER,
    "sendBy": CLIENTS_TIME,
    "color": "red",
}
del OTHER_FIELDS_OF_THE_OUTBOX["cancelRequested"]  # the one that may

FIELDS_OF_A_MESSAGE: dict[str, Any] = {
    **OF_THE_WORKER["message"],
    "status": "read",
    "parts": [{"type": "text", "text": "something else"}],
    "direction": "inbound",
}

FIELDS_OF_A_THREAD: dict[str, Any] = {
    "accountId": "other",
    "to": "+1",
    "unreadCount": 2,
    "lastMessageText": "something else",
    "lastMessageAt": CLIENTS_TIME,
    "color": "red",
}

WORKERS_DOCUMENTS: dict[str, Path] = {
    "the account": lambda scene: f"accounts/{scene.account}",
    "a member": lambda scene: f"accounts/{scene.account}/members/{VIEWER}",
    "an upload": lambda scene: f"accounts/{scene.account}/uploads/media-1",
    "a fetch": lambda scene: f"accounts/{scene.account}/fetches/message-1",
    "an app's upload": lambda scene: f"accounts/{scene.account}/incoming/media-1",
    "what a recipient got of marketing": lambda scene: f"accounts/{scene.account}/frequency/491",
    "a key": lambda scene: f"accounts/{scene.account}/keys/1",
    "what is paid": lambda scene: f"accounts/{scene.account}/billing/state",
    "whose customer it is": lambda scene: "billingCustomers/cus_1",
    "a lane": lambda scene: f"lanes/outbox:{scene.account}",
    "a limit": lambda scene: f"limits/{scene.key}",
    "a media document": lambda scene: f"media/{scene.key}",
    "that a person opted out": lambda scene: f"accounts/{scene.account}/suppressed/+4915100000000",
    "a notification": lambda scene: f"accounts/{scene.account}/notifications/n-1",
    "a run": lambda scene: f"runs/{scene.account}",
    "a reminder": lambda scene: f"reminders/{scene.account}",
}

DELETED: dict[str, Path] = {
    **WORKERS_DOCUMENTS,
    "an outbox document": own,
    "a message": own_message,
    "a thread": thread,
}

CASES = [
    *(Case(name, who, update(path, cancelRequested=True), allowed) for name, (who, path, allowed) in CANCELS.items()),
    *(Case(f"{name} at once", who, cancel(path), allowed) for name, (who, path, allowed) in CANCELS.items()),
    Case("a cancel at once needs the wish", AGENT, cancel(own, wish=None), allowed=False),
    Case("a cancel at once of a document that is not there", AGENT, cancel(missing, wish=None), allowed=False),
    Case("a cancel at once has the time of its commit", AGENT, cancel(own, createdAt=CLIENTS_TIME), allowed=False),
    Case("a cancel at once has no other field", AGENT, cancel(own, status="cancelled"), allowed=False),
    Case("an agent cancels with the whole document", AGENT, update(own, cancelRequested=True, attempts=0), True),
    Case("a signed-out user has no cancel granted at once", SIGNED_OUT, cancel(own, None), allowed=False),
    Case("a cancel is true or nothing", AGENT, update(own, cancelRequested=False), allowed=False),
    Case("a cancel is no word", AGENT, update(own, cancelRequested="yes"), allowed=False),
    Case("an update that changes nothing is refused", AGENT, update(own, attempts=0), allowed=False),
    Case("a document that is not there is not cancelled", AGENT, update(missing, cancelRequested=True), False),
    *(
        Case(f"an owner does not change {name} of an outbox document", OWNER, update(own, **{name: value}), False)
        for name, value in OTHER_FIELDS_OF_THE_OUTBOX.items()
    ),
    *(
        Case(
            f"an agent does not change {name} while cancelling",
            AGENT,
            update(own, cancelRequested=True, **{name: OTHER_FIELDS_OF_THE_OUTBOX[name]}),
            allowed=False,
        )
        for name in ("status", "nextAttemptAt", "parts")
    ),
    Case("an agent does not take a field away", AGENT, update(own, cancelRequested=True, to=DELETE_FIELD), False),
    *(Case(name, who, update(thread, unreadCount=0), allowed) for name, (who, allowed) in READS.items()),
    Case("a thread is marked as read with a whole number", AGENT, update(thread, unreadCount=0.0), allowed=False),
    Case("a thread is marked as read and nothing else", AGENT, update(thread, unreadCount=0, color="red"), False),
    *(
        Case(f"an agent does not change {name} of a thread", AGENT, update(thread, **{name: value}), allowed=False)
        for name, value in FIELDS_OF_A_THREAD.items()
    ),
    *(
        Case(f"an owner does not change {name} of a message", OWNER, update(own_message, **{name: value}), False)
        for name, value in FIELDS_OF_A_MESSAGE.items()
    ),
    *(
        Case(f"an owner does not write {what}", OWNER, write(path, {"role": "owner", "accountId": "x"}), False)
        for what, path in WORKERS_DOCUMENTS.items()
    ),
    Case(
        "an owner does not take the number by which webhooks find another account",
        OWNER,
        update(lambda scene: f"accounts/{scene.account}", providerNumber="1066"),
        allowed=False,
    ),
    Case(
        "a viewer does not make themselves an owner",
        VIEWER,
        update(lambda scene: f"accounts/{scene.account}/members/{VIEWER}", role="owner"),
        allowed=False,
    ),
    Case(
        "a user with no account does not make themselves a member",
        NEWCOMER,
        write(lambda scene: f"accounts/{scene.account}/members/{NEWCOMER}", {"role": "owner"}),
        allowed=False,
    ),
    *(Case(f"an owner does not delete {what}", OWNER, delete(path), False) for what, path in DELETED.items()),
]
