"""Record the gap between server timestamp and visibility, of documents that are read anyway."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from firestore_outbox import log, metrics
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.sending.visibility import gap_of, is_near


def record_gaps(ref: LaneRef, documents: Sequence[Stored], overlap: timedelta) -> None:
    for stored in documents:
        if not isinstance(stored.message, OutboxMessage):
            continue
        gap = gap_of(stored.message, stored.created)
        if gap is None:
            continue
        metrics.visibility_gap(gap.total_seconds())
        if is_near(gap, overlap):
            log.visible_late(ref, ref.account_id, stored.request_id, gap.total_seconds(), overlap.total_seconds())
