"""Where each document lives. The contract's names, in one place."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

from firestore_outbox.messages.ids import is_document_id

OUTBOX = "outbox"
LANES = "lanes"
MESSAGES = "messages"
THREADS = "threads"
REMINDERS = "reminders"
RUNS = "runs"
LONGEST_NAME = 700
"""Characters of a document's id that a client chose; Firestore takes 1,500 bytes."""


def outbox(request_id: str) -> str:
    return f"{OUTBOX}/{request_id}"


def thread(thread_id: str) -> str:
    return f"{THREADS}/{thread_id}"


def message(thread_id: str, message_id: str) -> str:
    return f"{THREADS}/{thread_id}/{MESSAGES}/{message_id}"


def account(account_id: str) -> str:
    return f"accounts/{account_id}"


def upload(account_id: str, media_id: str) -> str:
    """A mediaId is up to 512 of any character except a slash; Firestore takes fewer names."""
    safe = quote(media_id, safe="")
    if len(safe) > LONGEST_NAME or not is_document_id(safe):
        safe = sha256(media_id.encode()).hexdigest()
    return f"accounts/{account_id}/uploads/{safe}"


def lane(kind: str, key: str) -> str:
    return f"{LANES}/{kind}:{key}"


def reminder(reminder_id: str) -> str:
    return f"{REMINDERS}/{reminder_id}"


def targets(reminder_id: str) -> str:
    """The collection of a reminder's targets, many to a document."""
    return f"{REMINDERS}/{reminder_id}/targets"


def run(run_id: str) -> str:
    return f"{RUNS}/{run_id}"


def limit(name: str) -> str:
    return f"limits/{name}"


def limit_shard(name: str, number: int) -> str:
    """The state of a shared limit, or of one of its lines."""
    return f"{limit(name)}/shards/{number}"


def pressure(kind: str) -> str:
    """How busy a kind of handler is."""
    return f"pressure/{kind}"


def migration(name: str) -> str:
    """How far a migration has come."""
    return f"migrations/{name}"


def app_throttle(provider: str) -> str:
    return limit(f"app-{provider}")
