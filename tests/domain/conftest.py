"""Examples have no time limit of their own: a busy machine is no reason to fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("outbox", deadline=None)
settings.load_profile("outbox")
