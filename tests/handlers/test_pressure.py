"""The debounce that adapts: it grows with 429 answers and with runs that wait, and comes back by itself."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.pressure import Pressure, is_worth_a_write, level_at, measured, stretched
from firestore_outbox.handlers.pressure_store import PressureStore
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.state import Debounce
from firestore_outbox.settings import Settings
from tests.builders import NOW, at
from tests.calm import Calm, simulate


@pytest.mark.parametrize(
    ("throttles", "waiting", "level"),
    [(0, 0, 0.0), (1, 0, 0.25), (4, 0, 1.0), (0, 8, 0.25), (2, 16, 1.0), (9, 99, 1.0)],
)
def test_429_answers_and_waiting_runs_are_pressure(throttles: int, waiting: int, level: float) -> None:
    assert measured(throttles=throttles, waiting=waiting, places=8) == level


def test_pressure_halves_every_thirty_seconds() -> None:
    assert [level_at(Pressure(0.8, NOW), at(seconds)) for seconds in (0, 30, 60)] == pytest.approx([0.8, 0.4, 0.2])
    assert level_at(None, NOW) == 0


def test_only_pressure_that_grew_clearly_is_written() -> None:
    assert is_worth_a_write(None, 0.25, NOW)
    assert not is_worth_a_write(Pressure(0.5, NOW), 0.7, NOW)
    assert is_worth_a_write(Pressure(0.5, NOW), 0.7, at(60))


@pytest.mark.parametrize(("level", "quiet"), [(0, 5), (0.5, 10), (1, 15)])
def test_the_debounce_stays_between_quiet_and_at_most(level: float, quiet: float) -> None:
    debounce = Debounce(quiet=timedelta(seconds=5), most=timedelta(seconds=15))
    assert stretched(debounce, level) == Debounce(quiet=timedelta(seconds=quiet), most=timedelta(seconds=15))


def waits(*, adaptive: bool) -> list[float]:
    """Seconds from an event to its run: before a 429, right after it, and five minutes later."""
    began: list[float] = []

    async def handler(context: Context) -> None:
        began.append(asyncio.get_running_loop().time())
        if len(began) == 2:
            for _ in range(4):
                await context.limit("api").throttled(retry_after=0)

    async def body(calm: Calm) -> list[float]:
        found = []
        for number, pause in enumerate((60, 60, 300, 0)):
            sent = asyncio.get_running_loop().time()
            await calm.world.functions[0].system.events.event("nextup", f"e-{number}", {}, "ann")
            await asyncio.sleep(20)
            found.append(round(began[-1] - sent, 1))
            await asyncio.sleep(pause if number != 1 else 0)
        return found

    made = Registration(kind="nextup", function=handler, quiet=5, at_most=15, adaptive=adaptive)
    return simulate(body, handlers={"nextup": made}, settings=Settings(limits="api=100/10"))


def test_after_429_answers_the_wait_is_longer_for_a_while() -> None:
    before, during, after, later = waits(adaptive=True)
    assert before < 6
    assert during < 6
    assert after > 9
    assert later < 6


def test_without_adaptive_the_wait_stays_as_it_is() -> None:
    assert max(waits(adaptive=False)) < 6


def test_a_run_is_not_repeated_because_its_pressure_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    async def unavailable(self: PressureStore, kind: str) -> None:
        raise StoreUnavailable("Firestore did not answer")

    async def handler(context: Context) -> None:
        runs.append(context.key)
        for _ in range(4):
            await context.limit("api").throttled(retry_after=0)

    async def body(calm: Calm) -> None:
        await calm.world.functions[0].system.events.event("nextup", "e-1", {}, "ann")
        await asyncio.sleep(120)

    monkeypatch.setattr(PressureStore, "_read", unavailable)
    made = Registration(kind="nextup", function=handler, quiet=5, at_most=15, adaptive=True)
    simulate(body, handlers={"nextup": made}, settings=Settings(limits="api=100/10"))
    assert runs == ["ann"]
