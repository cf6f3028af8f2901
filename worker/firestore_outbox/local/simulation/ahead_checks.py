"""What must hold of messages that go ahead of others.

    ahead        once its lane is marked, an urgent message is not passed by bulk for longer than a renewal of the
                 lease, two intervals of the pace and the time of a look

Left out: worlds in which calls to the store are late or lost, machines stall or clocks are wild, where a holder may see
the mark at any time; and lanes without room for another hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulation.scenario import Scenario
from firestore_outbox.local.simulation.truth import Truth
from firestore_outbox.sending.ahead import LOOK_EVERY

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
    bulk = [one for one in truth.attempts if truth.collection("outbox")[one.request_id].get("priority") == "bulk"]
    for spec in scenario.messages:
        marked_at = _marked_at(truth, spec.request_id, spec.account_id) if spec.priority == "urgent" else None
        if marked_at is None or spec.request_id not in tried:
            continue
        cap = paces[spec.account_id]
        patience = max(LOOK_EVERY, timedelta(0) if cap is None else 2 * cap.interval) + _SLACK + scenario.widest_skew
        patience += scenario.settings.lease / 3  # a holder that expects no urgent message sees the mark when it renews
        passed = [
            one.request_id
            for one in bulk
            if one.account_id == spec.account_id and marked_at + patience < one.at < tried[spec.request_id]
        ]
        if passed:
            yield (
                f"ahead: {spec.request_id} is urgent, its lane was marked at {marked_at:%H:%M:%S.%f}, it was tried at "
                f"{tried[spec.request_id]:%H:%M:%S.%f}, and {len(passed)} bulk messages went between, {passed[0]} first"
            )


def _marked_at(truth: Truth, request_id: str, account_id: str) -> datetime | None:
    """When the lane had a mark for the message; None: never, or not before it was tried."""
    lane, is_there = outbox_lane(account_id).path, False
    for seen in truth.changes:
        is_there = is_there or seen.path == f"outbox/{request_id}"
        if is_there and seen.path == lane and seen.data is not None and seen.data.get("urgentAt") is not None:
            return seen.at
    return None
