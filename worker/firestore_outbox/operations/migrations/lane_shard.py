"""`lanes/{kind}:{key}.shard` and `.acquirableAt`: the place of a lane in the index that the sweep reads.

Until this release the sweep asked an index for each of the lane's states, and each grew with time for the whole system.
A lane that a worker of this release writes gets its place with that write; this migration places the others.
"""

from __future__ import annotations

from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.lane.ref import lane_ref
from firestore_outbox.lane.store import lane_of, place_fields, place_of
from firestore_outbox.operations.migrations.decision import Change, Decision, Document, Keep, Migration


def forward(document: Document) -> Decision:
    """A shard that a worker chose stays; a lane that waits for a wake has no time."""
    shard, at = place_of(lane_ref(document.id), lane_of(document.fields))
    stored = document.fields.get("shard")
    wanted = place_fields((stored if isinstance(stored, int) else shard, at))
    changed = {name: value for name, value in wanted.items() if document.fields.get(name) != value}
    return Change({name: DELETE if value is None else value for name, value in changed.items()}) if changed else Keep()


def back(document: Document) -> Decision:
    stored = [name for name in place_fields((None, None)) if name in document.fields]
    return Change(dict.fromkeys(stored, DELETE)) if stored else Keep()


LANE_SHARD = Migration(
    name="lane-shard",
    what="stores when each lane can be acquired (shard, acquirableAt), for the sweep",
    collection="lanes",
    forward=forward,
    back=back,
)
