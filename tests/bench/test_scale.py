"""What 300 busy accounts write, for each message: the same as ten thousand would (`make scale`)."""

from __future__ import annotations

from bench.scale import MOST_OF_A_RANGE, PER_MINUTE, measure
from firestore_outbox.lane.store import SHARDS
from firestore_outbox.settings import Settings

MANY = 10_000
OF_ONE_ACCOUNT = {"lanes", "messages", "outbox", "threads"}
LANES = "lanes(shard, acquirableAt) by acquirableAt"


def test_no_document_and_no_unsharded_index_takes_writes_of_all_busy_accounts() -> None:
    """With one shard, what a message writes to the index of lanes can be counted; with 30 it is divided by 30."""
    measured = measure(300, 6.0, Settings(lane_shards=1), before=2.0, arrears=4)

    assert measured.messages > 0.8 * 300 * 6.0 * PER_MINUTE / 60
    assert set(measured.documents) <= OF_ONE_ACCOUNT, "no document is written for more than one account"
    assert set(measured.shared_ranges) <= {LANES}
    a_message = measured.shared_ranges.get(LANES, 0.0)
    assert a_message * MANY * PER_MINUTE / 60 / SHARDS <= MOST_OF_A_RANGE
    assert measured.bill["writes"] <= 4.5
