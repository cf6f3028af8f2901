"""The bounds of `bench.cost` that no other test holds."""

from __future__ import annotations

from bench import cost


def test_a_target_whose_message_is_read_while_others_are_written_costs_at_most_1_2_reads() -> None:
    """The sender is as fast as the fan-out: many messages become visible after the scan that reads them has begun."""
    row = cost.ours(cost.TARGET, 1_000, cost.run_of(1_000, concurrency=50))

    assert cost.faults([row]) == []
