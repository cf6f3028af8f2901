"""The large fan-out with variables, consent and a warm-up: as fast, counts that add up, and nearly the same cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.consent.suppressions import Source
from firestore_outbox.media.storage import FileRef
from tests.calm import Meter
from tests.media.support import START, Shop, part, simulate
from tests.reminders.support import call_times, only_run, remind, until_ended
from tests.reminders.test_fanout import GROUPS, IMAGE, IMAGE_ID, MINUTE, NO_RECEIPTS, PER_MINUTE
from tests.sending.test_pace import most_in

OPTED_OUT = 20
CAPTION = "{name}, the market opens at nine."
CONSENT: dict[str, Any] = {"recipientHours": {"startHour": 0, "endHour": 24}}
WARM_UP: dict[str, Any] = {
    "warmUp": {"startPerDay": 1_200, "factor": 1.5, "untilPerDay": 5_000, "since": f"{START:%Y-%m-%d}"},
    "pauseRunsAt": {"percent": 20, "outcomes": 50},
}
"""A day with room for all targets."""
CAP: dict[str, Any] = {"frequencyCap": {"messages": 2, "days": 7}}


def address(number: int) -> str:
    return f"+4915112{number:05}"


@dataclass(frozen=True, slots=True)
class Seen:
    took: timedelta
    run: dict[str, Any]
    times: list[Any]
    statuses: Counter[str]
    texts: set[str]
    uploads: int
    cost: float
    """Reads and writes for each target."""


def campaign(*, consent: bool, **account: Any) -> Seen:
    """1,000 recipients and a picture of five megabytes, at 40 a minute."""

    async def body(shop: Shop) -> Seen:
        shop.world.provider.faults = NO_RECEIPTS
        await shop.storage.add(FileRef("shop", IMAGE_ID), IMAGE, mime_type="image/png", filename=None)
        await shop.account(pace={"perMinute": PER_MINUTE}, **account)
        for number in range(OPTED_OUT if consent else 0):
            await shop.world.client.system.suppressions.add("shop", address(number), Source.OPERATOR)
        listed = [
            {"id": f"t{n}", "to": address(n), **({"variables": {"name": f"Person {n}"}} if consent else {})}
            for n in range(GROUPS)
        ]
        caption = CAPTION if consent else CAPTION.removeprefix("{name}, ")
        own: dict[str, Any] = {"personal": True} if consent else {}
        began, meter = shop.world.clock(), Meter(shop)
        schedule = {"type": "once", "at": began}
        parts = [part(IMAGE_ID, caption=caption)]
        fields: dict[str, Any] = {"category": "marketing", "parts": parts, "schedule": schedule, **own}
        await remind(shop, listed=listed, **fields)
        await until_ended(shop, within=timedelta(hours=1))
        outbox = shop.world.truth.collection("outbox").values()
        return Seen(
            took=max(call_times(shop)) - began,
            run=only_run(shop),
            times=call_times(shop),
            statuses=Counter(data["status"] for data in outbox),
            texts={data["parts"][0]["caption"] for data in outbox},
            uploads=len(shop.uploads),
            cost=(meter.reads + meter.writes) / GROUPS,
        )

    return simulate(body, sweeps=False)


@pytest.fixture(scope="module")
def plain() -> Seen:
    return campaign(consent=False)


@pytest.fixture(scope="module")
def seen() -> Seen:
    return campaign(consent=True, **CONSENT, **WARM_UP)


@pytest.fixture(scope="module")
def capped() -> Seen:
    return campaign(consent=True, **CONSENT, **WARM_UP, **CAP)


def test_it_is_finished_in_25_to_50_minutes_without_those_who_opted_out(seen: Seen) -> None:
    least = (GROUPS - OPTED_OUT) / PER_MINUTE * MINUTE
    assert least - timedelta(seconds=10) <= seen.took <= timedelta(minutes=50)
    assert most_in(seen.times, MINUTE) <= PER_MINUTE
    assert seen.run["finishedAt"] - START <= timedelta(minutes=50)
    assert seen.uploads == 1


def test_its_counts_add_up_with_the_reasons(seen: Seen) -> None:
    counts = seen.run["counts"]
    assert seen.statuses == {"sent": GROUPS - OPTED_OUT, "skipped": OPTED_OUT}
    assert (counts["total"], counts["sent"], counts["skipped"]) == (GROUPS, GROUPS - OPTED_OUT, OPTED_OUT)
    assert seen.run["reasons"] == {"skipped": {"opted_out": OPTED_OUT}}
    assert seen.run["status"] == "partial"


def test_each_recipient_gets_a_text_of_their_own(seen: Seen) -> None:
    assert seen.texts == {f"Person {number}, the market opens at nine." for number in range(GROUPS)}


def test_a_target_costs_at_most_a_tenth_more_than_without_any_of_them(plain: Seen, seen: Seen) -> None:
    assert plain.statuses == {"sent": GROUPS}
    assert seen.cost <= plain.cost * 1.1


def test_the_frequency_cap_costs_a_read_and_a_write_for_each_target_it_admits(seen: Seen, capped: Seen) -> None:
    assert capped.statuses == seen.statuses
    assert capped.cost - seen.cost == pytest.approx(2 * (GROUPS - OPTED_OUT) / GROUPS, abs=0.05)
