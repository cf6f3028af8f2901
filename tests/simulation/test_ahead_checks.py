"""The check of urgent messages bites: without a safeguard, it finds a breach in a world with a run beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.local.simulation.network import NO_BAD_LUCK
from firestore_outbox.local.simulation.reminders import ReminderSpec
from firestore_outbox.local.simulation.run import run_scenario
from firestore_outbox.local.simulation.scenario import AccountSpec, MessageSpec, Scenario, draw
from firestore_outbox.sending.ahead import Ahead
from firestore_outbox.sending.turn_order import TurnOrder
from firestore_outbox.settings import Settings


def world() -> Scenario:
    """A run of 50 targets at 40 a minute, and urgent messages beside it."""
    account = AccountSpec(
        account_id="account-0",
        provider="simulated",
        on_uncertain="hold",
        per_minute=40,
        burst=1,
        per_recipient_seconds=0,
        concurrency=3,
    )
    run = ReminderSpec(
        at=0.0,
        reminder_id="reminder-0",
        account_id="account-0",
        parts=1,
        inline=50,
        chunks=(),
        has_doubles=False,
        fires_after=0.0,
        hours=(0, 24),
        on_window_end="stop",
        asked=(),
    )
    urgent = [
        MessageSpec(
            at=at, request_id=f"beside-{at:02.0f}", account_id="account-0", to=f"+47{at:.0f}", parts=1, priority=of
        )
        for at, of in ((12.0, "urgent"), (17.0, None), (25.0, "urgent"))
    ]
    return replace(
        draw(0),
        settings=Settings(),
        accounts=(account,),
        messages=tuple(urgent),
        happenings=(),
        luck=NO_BAD_LUCK,
        reminders=(run,),
        operators=(),
        events=(),
        troubles=frozenset(),
        has_wild_clocks=False,
        hold_room_bytes=ROOM_BYTES,
    )


def test_an_urgent_message_is_not_passed_by_bulk() -> None:
    assert run_scenario(world()).breaches == ()


def no_look_at_what_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Ahead, now: datetime, due_by: datetime) -> bool:
        return False

    monkeypatch.setattr(Ahead, "serve", nothing)


def messages_that_go_by_their_times_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnOrder, "ranked", lambda self, candidates, *args: candidates)


@pytest.mark.parametrize("mutation", [no_look_at_what_goes_ahead, messages_that_go_by_their_times_alone])
def test_the_check_finds(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert any(breach.startswith("ahead") for breach in run_scenario(world()).breaches)
