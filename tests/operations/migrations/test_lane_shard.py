"""The place of lanes that the release before wrote."""

from __future__ import annotations

from datetime import UTC, datetime

from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.operations.migrations.decision import Change, Document, Keep
from firestore_outbox.operations.migrations.lane_shard import back, forward

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_lane_gets_its_shard_and_the_time_at_which_it_can_be_acquired() -> None:
    ready = {"state": "ready", "readyAt": NOW}
    changed = forward(Document(path="lanes/outbox:shop", fields=ready))
    assert isinstance(changed, Change)
    assert changed.fields["acquirableAt"] == NOW
    assert 0 <= changed.fields["shard"] < 30
    assert forward(Document(path="lanes/outbox:shop", fields={**ready, **changed.fields})) == Keep()


def test_a_lane_that_waits_for_a_wake_has_no_time() -> None:
    stale = {"state": "idle", "shard": 40, "acquirableAt": NOW}
    assert forward(Document(path="lanes/outbox:shop", fields=stale)) == Change({"acquirableAt": DELETE})


def test_the_way_back_removes_both() -> None:
    placed = {"state": "idle", "shard": 4, "acquirableAt": NOW}
    removed = Change({"shard": DELETE, "acquirableAt": DELETE})
    assert back(Document(path="lanes/outbox:shop", fields=placed)) == removed
    assert back(Document(path="lanes/outbox:shop", fields={"state": "idle"})) == Keep()
