"""The entry points of the Cloud Functions, as gcloud and functions-framework look for them in this file.

The code is in firestore_outbox/web/functions.py, where a project that installs the distribution finds it too: its own
functions/main.py has the same import.
"""

from __future__ import annotations

from firestore_outbox.web.functions import (
    accounts,
    billing_webhook,
    enqueue,
    events,
    files,
    on_cancel_created,
    on_event_created,
    on_outbox_created,
    on_reminder_created,
    on_request_created,
    open_messages,
    provider_webhook,
    reminders,
    runs,
    sweep,
)

__all__ = [
    "accounts",
    "billing_webhook",
    "enqueue",
    "events",
    "files",
    "on_cancel_created",
    "on_event_created",
    "on_outbox_created",
    "on_reminder_created",
    "on_request_created",
    "open_messages",
    "provider_webhook",
    "reminders",
    "runs",
    "sweep",
]
