"""What must hold of messages that go ahead of others.

    ahead        once its lane is marked, an urgent message is not passed by bulk for longer than a renewal of the
                 lease, two intervals of the pace and the time of a look. When urgent messages have used up their cap,
                 it counts as normal, and bulk's share may pass it. Bulk also goes while its thread is blocked, by a
                 message that is on its way or by a hold

Left out: worlds in which calls to the store are late or lost, machines stall or clocks are wild, where a holder may see
the mark at any time; and lanes without room for another hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import datetime, timedelta

from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulation.scenario import Scenario
from firestore_outbox.local.simulation.truth import Attempt, Truth
from firestore_outbox.sending.ahead import LOOK_EVERY
from firestore_outbox.sending.precedence import BULK_EVERY, URGENT_BURST, urgent_cap

_UNSTEADY = {"contention", "late calls", "lost answers", "lost requests", "stalls", "wild clocks"}
_SLACK = timedelta(seconds=2)
"""For the calls between the mark and the claim."""


def ahead_breaches(scenario: Scenario, truth: Truth) -> Iterator[str]:
    if scenario.troubles & _UNSTEADY or scenario.hold_room_bytes < ROOM_BYTES:
        return
    paces = {one.account_id: Cap.per_minute(one.per_minute) for one in scenario.accounts}
    tried: dict[str, datetime] = {}
    for attempt in truth.attempts:
        tried.setdefault(attempt.request_id, attempt.at)
    outbox = truth.collection("outbox")
    bulk = {request_id for request_id, data in outbox.items() if data.get("priority") == "bulk"}
    urgent_threads = {data["threadId"] for data in outbox.values() if data.get("priority") == "urgent"}
    for spec in scenario.messages:
        marked_at = _marked_at(truth, spec.request_id, spec.account_id) if spec.priority == "urgent" else None
        if marked_at is None or spec.request_id not in tried:
            continue
        cap = paces[spec.account_id]
        patience = max(LOOK_EVERY, timedelta(0) if cap is None else 2 * cap.interval) + _SLACK + scenario.widest_skew
        patience += scenario.settings.lease / 3  # a holder that expects no urgent message sees the mark when it renews
        of_account = [one for one in truth.attempts if one.account_id == spec.account_id]
        to_urgent = [one.at for one in of_account if one.thread_id in urgent_threads]
        has_room = _has_room(to_urgent, urgent_cap(scenario.settings.urgent_per_minute, cap), tried[spec.request_id])
        thread_id = outbox[spec.request_id]["threadId"]
        passed = [
            one.request_id
            for one, is_share in _of_bulk(of_account, bulk)
            if marked_at + patience < one.at < tried[spec.request_id]
            and (has_room or not is_share)
            and not _is_blocked(truth, spec.account_id, thread_id, one.at)
        ]
        if passed:
            yield (
                f"ahead: {spec.request_id} is urgent, its lane was marked at {marked_at:%H:%M:%S.%f}, it was tried at "
                f"{tried[spec.request_id]:%H:%M:%S.%f}, and {len(passed)} bulk messages went between, {passed[0]} first"
            )


def _has_room(to_urgent: Sequence[datetime], cap: Cap | None, now: datetime) -> bool:
    """False: the cap of urgent messages may be used up, by them or by what they took along in their threads."""
    return cap is None or sum(now - (URGENT_BURST + 1) * cap.interval <= at < now for at in to_urgent) < URGENT_BURST


def _of_bulk(of_account: Sequence[Attempt], bulk: Set[str]) -> Iterator[tuple[Attempt, bool]]:
    """Attempts of bulk messages, and whether enough others went since the last one to make it bulk's turn."""
    others = 0
    for attempt in of_account:
        if attempt.request_id in bulk:
            yield attempt, others >= BULK_EVERY - 1
            others = 0
        else:
            others += 1


def _is_blocked(truth: Truth, account_id: str, thread_id: str, at: datetime) -> bool:
    """Whether a message of the thread was on its way then, or shortly before, or the lane held the thread."""
    since = at - _SLACK
    held_until = last_on_its_way = since
    on_its_way: set[str] = set()
    for seen in truth.changes:
        if seen.at > at:
            break
        if seen.data is None:
            continue
        if seen.path == outbox_lane(account_id).path:
            held_until = seen.data["holds"].get(thread_id, since)
        elif seen.path.startswith("outbox/") and seen.data["threadId"] == thread_id:
            if seen.path in on_its_way:
                on_its_way.remove(seen.path)
                last_on_its_way = seen.at
            if seen.data["status"] == "sending":
                on_its_way.add(seen.path)
    return bool(on_its_way) or max(held_until, last_on_its_way) > since


def _marked_at(truth: Truth, request_id: str, account_id: str) -> datetime | None:
    """When the lane had a mark for the message; None: never, or not before it was tried."""
    lane, is_there = outbox_lane(account_id).path, False
    for seen in truth.changes:
        is_there = is_there or seen.path == f"outbox/{request_id}"
        if is_there and seen.path == lane and seen.data is not None and seen.data.get("urgentAt") is not None:
            return seen.at
    return None
