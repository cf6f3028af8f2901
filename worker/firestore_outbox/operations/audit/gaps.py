"""How late documents became visible after their server timestamp, against the overlap that covers it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.sending.visibility import gap_of, is_near


class Gaps:
    def __init__(self, overlap: timedelta) -> None:
        self._overlap = overlap
        self._longest: tuple[timedelta, str] | None = None
        """The gap, and the document that had it."""

    def add(self, snapshot: Snapshot, message: OutboxMessage) -> None:
        gap = gap_of(message, snapshot.created)
        if gap is not None and (self._longest is None or gap > self._longest[0]):
            self._longest = (gap, snapshot.path)

    def findings(self) -> Iterator[Finding]:
        """At most one: the longest gap, if it comes near the overlap. A gap below it has broken nothing."""
        if self._longest is None or not is_near(self._longest[0], self._overlap):
            return
        gap, path = self._longest
        sentence = (
            f"it became visible {gap.total_seconds():.1f} s after its server timestamp, and pages overlap by "
            f"{self._overlap.total_seconds():.1f} s; raise OUTBOX_OVERLAP_SECONDS to at least "
            f"{2 * gap.total_seconds():.0f}, or messages of a thread may be sent out of order"
        )
        yield Finding("overlap", path, sentence, is_warning=gap < self._overlap)
