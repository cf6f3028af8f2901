"""What a turn knows of the lane's holds and has not written yet.

A hold keeps a thread's later messages back until a time, for a message that is retried or in doubt. Removing a hold
costs no write of its own: the turn leaves ended holds out whenever the lane is written anyway.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from firestore_outbox.clock import Clock
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.sending.complete import Completer
from firestore_outbox.sending.plan import Plan


class TurnHolds:
    def __init__(self, completer: Completer, clock: Clock) -> None:
        self._completer = completer
        self._clock = clock
        self._void: dict[str, ThreadHold] = {}
        """Holds whose message is gone."""
        self._resting: dict[str, datetime] = {}
        """threadId -> until when the recipient's pace lets nothing go. Counted from the call; the hold that is stored
        counts from the claim, a little earlier."""
        self._uncalled: dict[str, tuple[ThreadHold, datetime]] = {}
        """threadId -> what a claim wrote for the recipient's pace, and when that claim was given back."""

    def note_void(self, planned: Plan, lane: Lane, in_flight: Collection[str]) -> None:
        self._void.update((t, lane.holds[t]) for t in planned.void_holds if t in lane.holds and t not in in_flight)

    def rest(self, thread_id: str, until: datetime) -> None:
        """The recipient was called: nothing goes to this thread before `until`."""
        self._resting[thread_id] = until

    def not_called(self, thread_id: str, lane: Lane) -> None:
        """A claim was given back without a call: the recipient's pace that it spent holds nothing back."""
        if (hold := lane.holds.get(thread_id)) is not None:
            self._uncalled[thread_id] = (hold, self._clock())

    def known(self, lane: Lane) -> Lane:
        """The lane without the holds of messages that this turn completed, and with the rests of recipients."""
        lane = self._unspent(self._completer.tidied(lane))
        later = {
            thread_id: replace(hold, until=until)
            for thread_id, until in self._resting.items()
            if (hold := lane.holds.get(thread_id, ThreadHold(until=until))).until <= until
        }
        return replace(lane, holds={**lane.holds, **later}) if later else lane

    def _unspent(self, lane: Lane) -> Lane:
        """A hold that names a message goes on naming it."""
        holds = dict(lane.holds)
        for thread_id, (hold, at) in self._uncalled.items():
            if holds.get(thread_id) != hold:
                continue  # a later claim or call spent the recipient's pace again
            if hold.request_id is None:
                del holds[thread_id]
            else:
                holds[thread_id] = replace(hold, until=min(hold.until, at))
        return replace(lane, holds=holds) if self._uncalled else lane

    def without_ended(self, lane: Lane) -> Lane:
        lane = self.known(lane)
        void = frozenset(thread_id for thread_id, hold in self._void.items() if lane.holds.get(thread_id) == hold)
        return lane.without_holds(void).without_elapsed_holds(self._clock())

    def has_ended(self, lane: Lane) -> bool:
        return len(self.without_ended(lane).holds) < len(lane.holds)
