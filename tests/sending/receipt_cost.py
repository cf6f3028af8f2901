"""What the three receipts of one message cost, counted on the wire."""

from __future__ import annotations

import asyncio

from firestore_outbox.local.simulators.faults import Faults
from tests.calm import Calm, Meter, simulate


def cost_of_receipts() -> tuple[int, int]:
    """Reads and writes, for an account that the instance knows: it reads the account once a minute, to route events."""

    async def body(calm: Calm) -> tuple[int, int]:
        await calm.account()
        await calm.send("request-0")
        await calm.until(lambda: calm.document("threads/shop__+491/messages/request-0")["status"] == "read")
        calm.world.provider.faults = Faults(receiptDelayMs=10_000)
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await asyncio.sleep(5)
        meter = Meter(calm)
        await calm.until(lambda: calm.document("threads/shop__+491/messages/request-1")["status"] == "read")
        return meter.reads, meter.writes

    return simulate(body, sweeps=False)
