"""The public API of firestore-outbox. Everything else in this package is private and may change in any release.

    from firestore_outbox import send_message, schedule_message, cancel_message     # in your batch or transaction
    from firestore_outbox import watch_message, watch_thread                        # and what became of it
    from firestore_outbox import Provider, Sent, Throttled, Retryable, Rejected     # an adapter for your provider
    from firestore_outbox import Settings, create_app                               # the worker inside your own process

`firestore_outbox.adapter_testing` is public too: the contract suite for adapters, which needs pytest.
Names are loaded when they are first used: a backend that only sends messages does not import the worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    # sending, from a backend
    "send_message": "backend.batch",
    "schedule_message": "backend.batch",
    "cancel_message": "backend.batch",
    "watch_message": "backend.batch",
    "watch_thread": "backend.batch",
    "new_request_id": "backend.batch",
    "thread_id_of": "messages.ids",
    "seal_parts": "sealing.envelope",
    "InvalidMessage": "backend.message",
    "Message": "backend.batch",
    "Written": "backend.batch",
    # adapters for providers
    "Provider": "providers.protocol",
    "Profile": "providers.protocol",
    "Secret": "providers.protocol",
    "Checked": "providers.protocol",
    "Contact": "providers.protocol",
    "Contacts": "providers.protocol",
    "ContactsPage": "providers.protocol",
    "Pairing": "providers.protocol",
    "PairingCode": "providers.protocol",
    "PartReceipt": "providers.protocol",
    "InboundMessage": "providers.protocol",
    "SessionChanged": "providers.protocol",
    "Unrecognised": "providers.protocol",
    "WebhookEvent": "providers.protocol",
    "Arrived": "receipts.rules",
    "Bounced": "receipts.rules",
    "Progress": "receipts.rules",
    "Correlation": "messages.correlation",
    "OnePart": "providers.parts",
    "MediaMode": "providers.protocol",
    "Sessions": "providers.protocol",
    "SessionState": "providers.protocol",
    "Credentials": "providers.credentials",
    "ProviderTools": "providers.entry_points",
    "Outcome": "providers.outcome",
    "Sent": "providers.outcome",
    "Throttled": "providers.outcome",
    "Retryable": "providers.outcome",
    "Postponed": "providers.outcome",
    "Rejected": "providers.outcome",
    "AuthFailed": "providers.outcome",
    "NotConnected": "providers.outcome",
    "Unknown": "providers.outcome",
    "Scope": "providers.outcome",
    "ErrorCode": "providers.outcome",
    "DeliveryError": "providers.outcome",
    "Capability": "providers.outcome",
    "OutboxMessage": "messages.model",
    "TextPart": "messages.model",
    "MediaPart": "messages.model",
    "TemplatePart": "messages.model",
    # your code on a lane
    "conversation": "handlers.registration",
    "keyed": "handlers.registration",
    "Context": "handlers.context",
    "Permanent": "handlers.context",
    "poke": "backend.poke",
    "Limit": "limits.limit",
    # embedding
    "Settings": "settings",
    "create_app": "web.asgi",
}
"""Which module has each name."""

__all__ = [  # noqa: RUF022 - in the order of the table above; a test compares the two
    "send_message",
    "schedule_message",
    "cancel_message",
    "watch_message",
    "watch_thread",
    "new_request_id",
    "thread_id_of",
    "seal_parts",
    "InvalidMessage",
    "Message",
    "Written",
    "Provider",
    "Profile",
    "Secret",
    "Checked",
    "Contact",
    "Contacts",
    "ContactsPage",
    "Pairing",
    "PairingCode",
    "PartReceipt",
    "InboundMessage",
    "SessionChanged",
    "Unrecognised",
    "WebhookEvent",
    "Arrived",
    "Bounced",
    "Progress",
    "Correlation",
    "OnePart",
    "MediaMode",
    "Sessions",
    "SessionState",
    "Credentials",
    "ProviderTools",
    "Outcome",
    "Sent",
    "Throttled",
    "Retryable",
    "Postponed",
    "Rejected",
    "AuthFailed",
    "NotConnected",
    "Unknown",
    "Scope",
    "ErrorCode",
    "DeliveryError",
    "Capability",
    "OutboxMessage",
    "TextPart",
    "MediaPart",
    "TemplatePart",
    "conversation",
    "keyed",
    "Context",
    "Permanent",
    "poke",
    "Limit",
    "Settings",
    "create_app",
    "__version__",
]

if TYPE_CHECKING:
    from firestore_outbox.backend.batch import (
        Message,
        Written,
        cancel_message,
        new_request_id,
        schedule_message,
        send_message,
        watch_message,
        watch_thread,
    )
    from firestore_outbox.backend.message import InvalidMessage
    from firestore_outbox.backend.poke import poke
    from firestore_outbox.handlers.context import Context, Permanent
    from firestore_outbox.handlers.registration import conversation, keyed
    from firestore_outbox.limits.limit import Limit
    from firestore_outbox.messages.correlation import Correlation
    from firestore_outbox.messages.ids import thread_id_of
    from firestore_outbox.messages.model import MediaPart, OutboxMessage, TemplatePart, TextPart
    from firestore_outbox.providers.credentials import Credentials
    from firestore_outbox.providers.entry_points import ProviderTools
    from firestore_outbox.providers.outcome import (
        AuthFailed,
        Capability,
        DeliveryError,
        ErrorCode,
        NotConnected,
        Outcome,
        Postponed,
        Rejected,
        Retryable,
        Scope,
        Sent,
        Throttled,
        Unknown,
    )
    from firestore_outbox.providers.parts import OnePart
    from firestore_outbox.providers.protocol import (
        Checked,
        Contact,
        Contacts,
        ContactsPage,
        InboundMessage,
        MediaMode,
        Pairing,
        PairingCode,
        PartReceipt,
        Profile,
        Provider,
        Secret,
        SessionChanged,
        Sessions,
        SessionState,
        Unrecognised,
        WebhookEvent,
    )
    from firestore_outbox.receipts.rules import Arrived, Bounced, Progress
    from firestore_outbox.sealing.envelope import seal_parts
    from firestore_outbox.settings import Settings
    from firestore_outbox.web.asgi import create_app


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
