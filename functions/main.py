"""The entry points of the Cloud Functions, as gcloud and functions-framework look for them in this file.

The code is in firestore_outbox/web/functions.py, where a project that installs the distribution finds it too: its own
functions/main.py has the same import.
"""

from __future__ import annotations

from firestore_outbox.web.functions import (
    enqueue,
    events,
    on_event_created,
    on_outbox_created,
    provider_webhook,
    reminders,
    runs,
    sweep,
)

__all__ = [
    "enqueue",
    "events",
    "on_event_created",
    "on_outbox_created",
    "provider_webhook",
    "reminders",
    "runs",
    "sweep",
]
