"""How many threads a lane can hold: its holds are entries of its document, and Firestore's documents end at a mebibyte.

A lane whose document is full can be written by nobody any more: its account would stand still for good. So the room for
a hold is kept before it is needed. A message is claimed only if the hold that it may leave on its thread fits beside
those that are there, and beside those that the messages in flight may leave. Without room the lane goes on with the
threads that it holds, and takes new ones when some of those are free: slower, never stuck.

It takes thousands of threads that wait at once: a provider that refuses everything while much is queued, or a
recipient's pace of hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worker.domain.lane import ThreadHold
from worker.domain.message import OutboxMessage

ROOM_BYTES = 600_000
"""For all holds of a lane. What is left of a mebibyte is for the rest of the document, and for what earlier holders
left in flight."""
_AN_ENTRY = 20
"""What an entry of a map takes beside its texts: the time, and the frames around it."""
_LONGEST_REQUEST_ID = "x" * 128


class HoldRoom:
    """What is left, and less with each message that takes some of it."""

    def __init__(
        self, holds: Mapping[str, ThreadHold], in_flight: Iterable[str], *, room_bytes: int = ROOM_BYTES
    ) -> None:
        """`holds` as they are stored: one that has ended takes its room until that is written. `in_flight` are
        threadIds."""
        self._holds = holds
        self._left = room_bytes - sum(_bytes(thread_id, hold.request_id) for thread_id, hold in holds.items())
        self._left -= sum(self._growth(thread_id, _LONGEST_REQUEST_ID) for thread_id in in_flight)

    def take(self, message: OutboxMessage) -> bool:
        """Keeps the room for what the message may leave; False if there is not enough, and nothing is kept."""
        growth = self._growth(message.thread_id, message.request_id)
        if growth > max(0, self._left):
            return False
        self._left -= growth
        return True

    def _growth(self, thread_id: str, request_id: str) -> int:
        hold = self._holds.get(thread_id)
        stored = 0 if hold is None else _bytes(thread_id, hold.request_id)
        return max(0, _bytes(thread_id, request_id) - stored)


def _bytes(thread_id: str, request_id: str | None) -> int:
    """`holds` has the thread's name and a time; with the name of a message, `heldFor` has the thread's name again."""
    until = len(thread_id.encode()) + _AN_ENTRY
    return until if request_id is None else 2 * until + len(request_id)
