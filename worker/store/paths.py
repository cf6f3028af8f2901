"""Where each document lives. The contract's names, in one place."""

from __future__ import annotations

OUTBOX = "outbox"
LANES = "lanes"
MESSAGES = "messages"
THREADS = "threads"


def outbox(request_id: str) -> str:
    return f"{OUTBOX}/{request_id}"


def thread(thread_id: str) -> str:
    return f"{THREADS}/{thread_id}"


def message(thread_id: str, message_id: str) -> str:
    return f"{THREADS}/{thread_id}/{MESSAGES}/{message_id}"


def account(account_id: str) -> str:
    return f"accounts/{account_id}"


def lane(kind: str, key: str) -> str:
    return f"{LANES}/{kind}:{key}"


def limit(name: str) -> str:
    return f"limits/{name}"


def lane_of(lane_id: str) -> tuple[str, str]:
    """(kind, key) of a lane document's id."""
    kind, _, key = lane_id.partition(":")
    return kind, key
