"""The public API: the names that `firestore_outbox` promises, and nothing that comes along by accident."""

from __future__ import annotations

import subprocess
import sys

import pytest

import firestore_outbox

PROMISED = [
    "Arrived",
    "AuthFailed",
    "Bounced",
    "Capability",
    "Checked",
    "Correlation",
    "Context",
    "Credentials",
    "DeliveryError",
    "ErrorCode",
    "InboundMessage",
    "InvalidMessage",
    "MediaMode",
    "MediaPart",
    "Message",
    "NotConnected",
    "OnePart",
    "Outcome",
    "OutboxMessage",
    "Contact",
    "Contacts",
    "ContactsPage",
    "Pairing",
    "PairingCode",
    "PartReceipt",
    "Postponed",
    "Permanent",
    "Profile",
    "Progress",
    "Provider",
    "ProviderTools",
    "Rejected",
    "Retryable",
    "Scope",
    "Secret",
    "Sent",
    "SessionChanged",
    "SessionState",
    "Sessions",
    "Settings",
    "TemplatePart",
    "TextPart",
    "Throttled",
    "Unknown",
    "Unrecognised",
    "WebhookEvent",
    "Written",
    "__version__",
    "cancel_message",
    "conversation",
    "create_app",
    "keyed",
    "new_request_id",
    "poke",
    "Limit",
    "schedule_message",
    "seal_parts",
    "send_message",
    "thread_id_of",
    "watch_message",
    "watch_thread",
]
"""A name that leaves this list breaks someone's import: say so in the changelog."""


def test_the_list_of_public_names_is_pinned() -> None:
    assert {*firestore_outbox.__all__} == {*PROMISED}
    assert {*firestore_outbox._HOME, "__version__"} == {*PROMISED}
    assert dir(firestore_outbox) == sorted(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_each_public_name_can_be_imported(name: str) -> None:
    assert getattr(firestore_outbox, name) is not None


def test_a_name_that_does_not_exist_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'send_massage'"):
        firestore_outbox.send_massage  # noqa: B018 - the access is the test
    with pytest.raises(ImportError):
        from firestore_outbox import send_massage  # noqa: F401 - the import is the test


def test_a_backend_that_sends_does_not_load_the_worker() -> None:
    code = (
        "import sys; from firestore_outbox import send_message, schedule_message, cancel_message, watch_message;"
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] in"
        " ('firestore_outbox', 'starlette', 'httpx', 'pydantic', 'typer')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("firestore_outbox")} == {
        "firestore_outbox",
        "firestore_outbox.backend",
        "firestore_outbox.backend.batch",
        "firestore_outbox.backend.message",
        "firestore_outbox.messages",
        "firestore_outbox.messages.address",
        "firestore_outbox.messages.faults",
        "firestore_outbox.messages.ids",
        "firestore_outbox.messages.limits",
        "firestore_outbox.messages.new_documents",
        "firestore_outbox.messages.priority",
    }
    assert not {"starlette", "httpx", "pydantic", "typer"} & loaded
