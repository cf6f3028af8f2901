from __future__ import annotations

import pytest

from firestore_outbox.lane.hold_room import ROOM_BYTES, HoldRoom
from firestore_outbox.lane.state import ThreadHold
from firestore_outbox.lane.store import hold_changes
from tests.builders import at, message

ONE = 2 * (len("acme__1") + 20) + len("request-1")
"""What a hold takes that a message leaves, in bytes."""


def held(*recipients: str, by: str | None = "request-1") -> dict[str, ThreadHold]:
    return {f"acme__{to}": ThreadHold(until=at(60), request_id=by) for to in recipients}


def test_there_is_room_for_a_number_of_threads_and_no_more() -> None:
    room = HoldRoom({}, (), room_bytes=2 * ONE)
    assert [room.take(message(to=to)) for to in "123"] == [True, True, False]


def test_what_is_held_already_takes_its_room() -> None:
    room = HoldRoom(held("1"), (), room_bytes=2 * ONE)
    assert [room.take(message(to=to)) for to in "23"] == [True, False]


def test_a_thread_that_is_held_has_its_room() -> None:
    assert HoldRoom(held("1"), (), room_bytes=ONE).take(message(to="1"))


def test_a_thread_that_is_held_for_its_recipient_alone_needs_more_for_a_name() -> None:
    spared = held("1", by=None)
    assert HoldRoom(spared, (), room_bytes=ONE).take(message(to="1"))
    assert not HoldRoom(spared, (), room_bytes=ONE - 1).take(message(to="1"))


def test_what_is_in_flight_may_leave_the_largest_hold() -> None:
    of_the_longest_name = ONE - len("request-1") + 128
    assert HoldRoom({}, ["acme__1"], room_bytes=of_the_longest_name + ONE).take(message(to="2"))
    assert not HoldRoom({}, ["acme__1"], room_bytes=of_the_longest_name + ONE - 1).take(message(to="2"))


@pytest.mark.parametrize("to", ["4915112345678", "120363041234567890@g.us", "\N{SNOWMAN}" * 250])
def test_the_room_is_less_than_what_a_document_holds(to: str) -> None:
    room, threads = HoldRoom({}, ()), 0
    while room.take(message("r" * 128, to=f"{threads:05}{to}")):
        threads += 1
    holds = {f"acme__{n:05}{to}": ThreadHold(until=at(60), request_id="r" * 128) for n in range(threads)}
    entries = hold_changes({}, holds)

    stored = sum(
        len(key.encode()) + 1 + (len(value) + 1 if name == "heldFor" else 8) for (name, key), value in entries.items()
    )
    assert 0.5 * ROOM_BYTES < stored <= ROOM_BYTES
