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


def cancel(request_id: str) -> str:
    return f"cancels/{request_id}"


def thread(thread_id: str) -> str:
    return f"{THREADS}/{thread_id}"


def message(thread_id: str, message_id: str) -> str:
    return f"{THREADS}/{thread_id}/{MESSAGES}/{message_id}"


def account(account_id: str) -> str:
    return f"accounts/{account_id}"


def actions(account_id: str | None) -> str:
    """The collection of what people did with an account; None: with things that belong to no account."""
    return "actions" if account_id is None else f"{account(account_id)}/actions"


def upload(account_id: str, media_id: str) -> str:
    """A mediaId is up to 512 of any character except a slash; Firestore takes fewer names."""
    safe = quote(media_id, safe="")
    if len(safe) > LONGEST_NAME or not is_document_id(safe):
        safe = sha256(media_id.encode()).hexdigest()
    return f"accounts/{account_id}/uploads/{safe}"


def incoming_file(account_id: str, sha256: str) -> str:
    """A file that an app uploads."""
    return f"accounts/{account_id}/incoming/{sha256}"


def frequency(account_id: str, key: str) -> str:
    """What a recipient got of marketing runs; `key` stands for the address."""
    name = key if is_document_id(key) else sha256(key.encode()).hexdigest()
    return f"{account(account_id)}/frequency/{name}"


def fetches(account_id: str) -> str:
    """The collection of inbound messages whose files are still at the provider."""
    return f"accounts/{account_id}/fetches"


def notifications(account_id: str) -> str:
    """The collection of what an account's webhook and its members' devices get to know."""
    return f"{account(account_id)}/notifications"


def devices(account_id: str) -> str:
    """The collection of devices on which an account's members want notifications."""
    return f"{account(account_id)}/devices"


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


def sweep(step: str) -> str:
    """Where a step of the sweep goes on."""
    return f"sweeps/{step}"


def app_throttle(provider: str) -> str:
    return limit(f"app-{provider}")


def sealing_keys(account_id: str) -> str:
    """The collection of an account's keys, one document for each version."""
    return f"{account(account_id)}/keys"


def sealing_key(account_id: str, version: int) -> str:
    return f"{sealing_keys(account_id)}/{version}"


def billing(account_id: str) -> str:
    """What is paid for the account."""
    return f"{account(account_id)}/billing/state"


def customer(customer_id: str) -> str:
    """To which account one of Stripe's customers belongs."""
    return f"billingCustomers/{customer_id}"
