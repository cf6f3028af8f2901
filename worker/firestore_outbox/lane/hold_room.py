"""How many threads a lane can hold: its holds are entries of its document, and Firestore's documents end at a mebibyte.

No worker can write a lane whose document is full: its account would stand still for good. So the room for
a hold is kept before it is needed. A message is claimed only if the hold that it may leave on its thread fits beside
those that are there, and beside those that the messages in flight may leave. Without room the lane goes on with the
threads that it holds, and takes new ones when some of those are free: slower, never stuck.

It takes thousands of threads that wait at once: a provider that refuses everything while much is queued, or a
recipient's pace of hours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from firestore_outbox.lane.state import ThreadHold
from firestore_outbox.messages.model import OutboxMessage

ROOM_BYTES = 600_000
"""For all holds of a lane. What is left of a mebibyte is for the rest of the document, and for what earlier holders
left in flight."""
_AN_ENTRY = 20
"""What an entry of a map takes beside its texts: the time, and the frames around it."""
_LONGEST_REQUEST_ID = "x" * 128
_LONGEST_THREAD_ID_BYTES = 4 * (128 + 2 + 256)
_LARGEST = 2 * (_LONGEST_THREAD_ID_BYTES + _AN_ENTRY) + len(_LONGEST_REQUEST_ID)


class HoldRoom:
    """What is left, and less with each message that takes some of it."""

    def __init__(
        self, holds: Mapping[str, ThreadHold], in_flight: Collection[str], *, room_bytes: int = ROOM_BYTES
    ) -> None:
        """`holds` as they are stored: one that has ended takes its room until that is written. `in_flight` are
        threadIds."""
        self._holds = holds
        self._in_flight = in_flight
        self._room_bytes = room_bytes
        self._taken: list[OutboxMessage] = []
        self._fit_anyway = room_bytes // _LARGEST - len(holds) - len(in_flight)
        """This number fits, however long the names are: normally nothing is counted."""
        self._left: int | None = None
        """In bytes, once it is counted."""

    def take(self, message: OutboxMessage) -> bool:
        """Keeps the room for what the message may leave; False if there is not enough, and nothing is kept."""
        if len(self._taken) < self._fit_anyway:
            self._taken.append(message)
            return True
        left = self._counted() if self._left is None else self._left
        growth = self._growth(message.thread_id, message.request_id)
        is_enough = growth <= max(0, left)
        self._left = left - growth if is_enough else left
        return is_enough

    def _counted(self) -> int:
        held = sum(_bytes(thread_id, hold.request_id) for thread_id, hold in self._holds.items())
        in_flight = sum(self._growth(thread_id, _LONGEST_REQUEST_ID) for thread_id in self._in_flight)
        taken = sum(self._growth(message.thread_id, message.request_id) for message in self._taken)
        return self._room_bytes - held - in_flight - taken

    def _growth(self, thread_id: str, request_id: str) -> int:
        hold = self._holds.get(thread_id)
        stored = 0 if hold is None else _bytes(thread_id, hold.request_id)
        return max(0, _bytes(thread_id, request_id) - stored)


def _bytes(thread_id: str, request_id: str | None) -> int:
    """`holds` has the thread's name and a time; with the name of a message, `heldFor` has the thread's name again."""
    until = len(thread_id.encode()) + _AN_ENTRY
    return until if request_id is None else 2 * until + len(request_id)
