"""Three thousand accounts whose sessions share five slots of one gateway, for a day, on virtual time.

    python -m bench.sessions [--small]

It fails if a message is not sent, if more sessions are up than there are slots, or if a document takes more than a
write a second over a minute.

Method. The whole product on virtual time with the WAHA simulator: a session comes up four seconds after it is
started. The day: a third of the accounts send a run of two messages at a full hour (9, 10, 11, 14, 15 or 16:00, so
about 167 accounts are due at once), and every account answers one person at a random time between 8:00 and 20:00, two
thirds of them around noon and in the evening: 5,000 messages, which need about 4,000 sessions. The app writes each
message at its time, so the delay is from that write to the gateway's answer. Sessions are not sticky, as those of
accounts older than a day of use. Cloud Scheduler's sweep runs each minute, and its cost is in the figures. Counted on
the wire as Firestore bills it; writes of a document by its busiest minute.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import httpx

from bench.report import arguments, heading, keep, say
from bench.virtual import Counted, in_virtual_time
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, FixedCredentials
from firestore_outbox.settings import Settings

ACCOUNTS, SLOTS, START_MS = 3_000, 5, 4_000
MORNING, EVENING = timedelta(hours=8), timedelta(hours=20)
RUN_HOURS = (9, 10, 11, 14, 15, 16)
RUN = 2
SWEEP_SECONDS = 60.0
ADDED_AT_A_TIME = 100


@dataclass(frozen=True, order=True)
class Due:
    at: timedelta
    """After midnight."""
    account_id: str
    number: int


def schedule(accounts: list[str], random: Random) -> list[Due]:
    """What the app writes, in order."""
    found = []
    for place, account_id in enumerate(accounts):
        if place % 3 == 0:
            hour = timedelta(hours=random.choice(RUN_HOURS))
            found += [Due(hour, account_id, number) for number in range(RUN)]
        peak = random.choice([timedelta(hours=12), timedelta(hours=18), None])
        spread = random.uniform(MORNING.total_seconds(), EVENING.total_seconds())
        at_second = spread if peak is None else random.gauss(peak.total_seconds(), 3600)
        at = min(max(timedelta(seconds=at_second), MORNING), EVENING)
        found.append(Due(at, account_id, RUN))
    return sorted(found)


class Gateway(Counted):
    """A world with a WAHA gateway in place of the simulated provider."""

    credentials = FixedCredentials(
        {"*": {"baseUrl": "http://waha/waha", "apiKey": "k", "session": "{accountId}", WEBHOOK_SECRET: DEFAULT_SECRET}}
    )

    def _provider_network(self) -> httpx.AsyncBaseTransport:
        self.simulator = ProviderSimulator(
            webhook="http://functions/{provider}/{accountId}",
            clock=self.clock,
            random=Random("gateway"),
            send=self.network.sender(self._webhook),
        )
        self.simulator.core.faults = parse_faults({"latencyMs": 300, "receiptLossRate": 1.0})
        return self.simulator.transport

    async def stop(self) -> None:
        await super().stop()
        await self.simulator.stop()

    async def add(self, accounts: list[str]) -> None:
        """Accounts that are linked and asleep."""
        fields = {"provider": "waha", "timezone": "UTC", "status": "active"}
        async with httpx.AsyncClient(transport=self.transport, base_url="http://waha") as control:
            for start in range(0, len(accounts), ADDED_AT_A_TIME):
                some = accounts[start : start + ADDED_AT_A_TIME]
                await self.client.system.gateway.commit([create(paths.account(one), fields) for one in some])
                for one in some:
                    order = {"status": "STOPPED", "startMs": START_MS}
                    (await control.put(f"/_sim/waha/sessions/{one}", json=order)).raise_for_status()

    async def most_running(self) -> int:
        async with httpx.AsyncClient(transport=self.transport, base_url="http://waha") as control:
            return int((await control.get("/_sim/waha/sessions")).json()["mostRunning"])


def measured(accounts: int, slots: int, shards: int, lasting: timedelta = EVENING) -> dict[str, Any]:
    """A day until `lasting`, and the time that the rest takes."""
    names = [f"account-{number:05}" for number in range(accounts)]
    day = [due for due in schedule(names, Random("day")) if due.at <= lasting]

    async def body(world: Gateway) -> dict[str, Any]:
        await world.add(names)
        hot_spots = world.firestore.engine.hot_spots
        hot_spots.start()
        world.reset()
        midnight = world.clock().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        written: dict[str, datetime] = {}
        sweeping = asyncio.create_task(_sweeps(world, midnight + MORNING - world.clock()))
        for place, due in enumerate(day):
            await asyncio.sleep(max(0.0, (midnight + due.at - world.clock()).total_seconds()))
            request_id = f"message-{place:06}"
            written[request_id] = world.clock()
            await world.send(request_id, account_id=due.account_id, to=f"49151{place:07}")
            if place % 1_000 == 999:
                say(f"{place + 1:,} messages written, {world.sent():,} sent")
        await world.until(lambda: world.sent() == len(day), look_seconds=10)
        sweeping.cancel()
        delays = sorted(
            (data["sentAt"] - written[path.rpartition("/")[2]]).total_seconds() for path, data in world.outbox().items()
        )
        busiest = hot_spots.report(most=1).documents[0]
        of_the_set = [one for one in hot_spots.report(most=10_000).documents if "/hotsets/" in one.name]
        bill = world.bill
        return {
            "accounts": accounts,
            "slots": slots,
            "shards": shards,
            "messages": len(day),
            "sent": len(delays),
            "mostUp": await world.most_running(),
            "delayMedianSeconds": round(statistics.median(delays), 1),
            "delay99thSeconds": round(delays[int(len(delays) * 0.99)], 1),
            "delayMostSeconds": round(delays[-1], 1),
            "readsAMessage": round(bill.reads / len(day), 1),
            "writesAMessage": round(bill.writes / len(day), 1),
            "tasksAMessage": round(bill.tasks / len(day), 1),
            "dollarsADay": round(bill.dollars, 2),
            "busiestDocument": busiest.name.partition("/documents/")[2],
            "busiestWritesASecond": round(busiest.per_second, 2),
            "setWritesASecond": round(max(one.per_second for one in of_the_set), 2),
        }

    settings = Settings(hot_sessions=slots, hot_shards=shards, sticky_hours=0)
    return in_virtual_time(body, world=Gateway, settings=settings)


async def _sweeps(world: Counted, first: timedelta) -> None:
    await asyncio.sleep(first.total_seconds())
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await world.sweep()


def faults_in(row: dict[str, Any]) -> list[str]:
    found = []
    if row["sent"] != row["messages"]:
        found.append(f"{row['messages'] - row['sent']} messages were not sent")
    if row["mostUp"] > row["slots"]:
        found.append(f"{row['mostUp']} sessions were up at once")
    if row["shards"] == row["slots"] and row["busiestWritesASecond"] > 1:
        found.append(f"{row['busiestDocument']} took {row['busiestWritesASecond']} writes a second")
    return found


def main() -> int:
    options = arguments("Three thousand accounts on five slots, for a day.").parse_args()
    if options.small:
        rows = [measured(20, SLOTS, SLOTS, MORNING + timedelta(hours=3))]
    else:
        rows = [measured(ACCOUNTS, SLOTS, SLOTS)]
    result = {**heading("three thousand accounts on five slots of a gateway", __doc__), "rows": rows}
    keep(result, "sessions", options)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    if faults := [fault for row in rows for fault in faults_in(row)]:
        print(f"not good: {'; '.join(faults)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
