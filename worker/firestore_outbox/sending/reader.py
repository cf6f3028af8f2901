"""When a turn reads its next page, how far and how much."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.plan import Plan
from firestore_outbox.sending.record_gaps import record_gaps
from firestore_outbox.settings import Settings

LEAST_PAGE = 10
FIRST_LOOK, LONGEST_LOOK = timedelta(milliseconds=150), timedelta(seconds=1)
"""Between two looks for new documents while the lane waits; twice as long after each look that found none."""
JUST_BEFORE = timedelta(microseconds=1)


class Reader:
    def __init__(self, candidates: Candidates, holder: Holder, settings: Settings) -> None:
        self._candidates = candidates
        self._holder = holder
        self._settings = settings
        self._look_pause = FIRST_LOOK

    async def read(self, now: datetime, cap: Cap | None, rate_factor: float, skip: Collection[str]) -> list[Stored]:
        """Read the next page; return the documents that were not known. `skip` are those in flight."""
        limit = self._page(now, cap, rate_factor)
        new = await self._candidates.read_more(now, self.due_by(now), limit, skip)
        self._look_pause = FIRST_LOOK if new else min(2 * self._look_pause, LONGEST_LOOK)
        record_gaps(self._holder.ref, new, self._settings.overlap)
        return new

    def _page(self, now: datetime, cap: Cap | None, rate_factor: float) -> int:
        """No more than can go before this turn ends at the latest: the next turn would read the rest again."""
        most = self._settings.claim_page
        if cap is None:
            return most
        can_go = cap.burst + (self._holder.ends_at - now) // cap.stretched(rate_factor)
        return min(most, max(LEAST_PAGE, can_go))

    def due_by(self, now: datetime) -> datetime:
        """The latest due time to ask for: past by the worker's clock, and complete by the database's.

        The worker's clock may be ahead, and so may the clock of the client that set a time. The database sets whole
        milliseconds, and more documents may still carry the present one."""
        present = self._holder.database_time()
        return min(now, present.replace(microsecond=present.microsecond // 1000 * 1000) - JUST_BEFORE)

    def could_use_more(self, planned: Plan) -> bool:
        return planned.startable > 0 or not self._candidates.in_order()

    @property
    def look_at(self) -> datetime | None:
        """When to look for new documents while the turn waits. None: nothing was read yet."""
        if self._candidates.read_at is None:
            return None
        return self._candidates.read_at + min(max(self._look_pause, self._candidates.price_of_a_look), LONGEST_LOOK)
