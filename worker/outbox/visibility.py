"""Record the gap between server timestamp and visibility, of documents that are read anyway."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from worker import log, metrics
from worker.domain.message import OutboxMessage
from worker.domain.visibility import gap_of, is_near
from worker.store.lanes import LaneRef
from worker.store.outbox_document import Stored


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
