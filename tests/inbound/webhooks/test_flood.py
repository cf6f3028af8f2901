"""A small flood at the real function, over HTTP, on the embedded stack. `make flood` is the large one, with a clock."""

from __future__ import annotations

from random import Random

from bench.floods import STATES, flood, plan
from firestore_outbox.local.dev import DevSettings, DevStack

RECEIPTS = 300
QUICKLY = {"OUTBOX_LOG_LEVEL": "WARNING", "OUTBOX_RECEIPT_RETRY_SECONDS": "1,1,2,4,60"}


async def test_a_flood_of_shuffled_and_doubled_receipts_leaves_every_message_as_the_furthest_of_them_says() -> None:
    planned = plan(RECEIPTS, Random(3))
    assert {message.state for message in planned.messages} == set(STATES)
    assert planned.duplicates >= 0.28 * RECEIPTS
    settings = DevSettings(
        firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0, environment=QUICKLY
    )
    async with DevStack(settings) as stack:
        outcome = await flood(stack, planned)
    assert dict(outcome.answers) == {200: len(planned.bodies)}
    assert outcome.wrong == {}
    assert outcome.receipts.get("dropped", 0) == 0
    assert outcome.receipts["advanced"] > 0, "receipts that came too early went through Cloud Tasks"
