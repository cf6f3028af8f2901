"""An account that lost its session: its messages wait, and go when the session is up, not when a pause ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.local.simulators.faults import parse_faults
from tests.calm import START, Calm, simulate

MINUTE = timedelta(minutes=1)


def set_session(calm: Calm, state: Any, *, tells: bool) -> None:
    provider = calm.world.provider
    provider.set_account("shop", replace(provider.account("shop"), session=state))
    if tells:
        event = {"type": "session", "status": state, "at": calm.world.clock().isoformat()}
        calm.world.webhooks.post("simulated", "shop", event)


async def down_for_minutes(calm: Calm) -> None:
    """Long enough for the pauses to be as long as they get."""
    set_session(calm, "down", tells=True)
    await calm.account()
    for number in range(6):
        await calm.send(f"request-{number}", to=f"+49{number % 3}")
    await asyncio.sleep(400)
    assert calm.statuses() == {"queued": 6}


def asleep(calm: Calm) -> bool:
    """No worker holds the lane, and the pause is far from its end."""
    lane = calm.lane()
    return bool(lane["state"] == "idle" and lane["pausedUntil"] > calm.world.clock() + timedelta(seconds=30))


def test_messages_that_wait_for_a_session_go_as_soon_as_it_is_up() -> None:
    async def body(calm: Calm) -> None:
        await down_for_minutes(calm)
        await calm.until(lambda: asleep(calm))
        up_at = calm.world.clock()
        set_session(calm, "up", tells=True)
        await calm.until(lambda: calm.statuses() == {"sent": 6})
        assert calm.world.clock() - up_at < timedelta(seconds=8)
        accepted = [call.request_id for call in calm.world.truth.calls if call.accepted]
        assert [request for request in accepted if request in ("request-0", "request-3")] == ["request-0", "request-3"]

    simulate(body)


def test_a_session_that_comes_up_untold_is_found_when_the_pause_ends() -> None:
    async def body(calm: Calm) -> None:
        await down_for_minutes(calm)
        up_at = calm.world.clock()
        set_session(calm, "up", tells=False)
        await calm.until(lambda: calm.statuses() == {"sent": 6})
        assert calm.world.clock() - up_at < 2 * MINUTE

    simulate(body)


def test_a_message_that_came_during_the_pause_does_not_keep_the_lane_asleep() -> None:
    """Its wake made the lane ready for the pause's end; the session's word is another task, for now."""

    async def body(calm: Calm) -> None:
        await down_for_minutes(calm)
        await calm.until(lambda: asleep(calm))
        await calm.until(lambda: calm.lane()["state"] == "idle")
        await calm.send("request-late", to="+4977")
        await calm.until(lambda: calm.lane()["state"] == "ready")
        up_at = calm.world.clock()
        set_session(calm, "up", tells=True)
        await calm.until(lambda: calm.statuses() == {"sent": 7})
        assert calm.world.clock() - up_at < timedelta(seconds=8)

    simulate(body)


def test_a_session_that_flaps_with_nothing_to_send_wakes_no_lane() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await calm.until(lambda: calm.lane()["state"] == "idle")
        fence = calm.lane()["fence"]
        for _ in range(5):
            set_session(calm, "down", tells=True)
            await asyncio.sleep(1)
            set_session(calm, "up", tells=True)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        assert calm.lane()["fence"] == fence

    simulate(body, sweeps=False)


def test_a_session_that_comes_up_does_not_end_what_a_throttle_asked_for() -> None:
    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"throttleRate": 1.0, "retryAfterSeconds": 300, "forCalls": 1})
        await calm.account(concurrency=1)
        await calm.send("request-1")
        await calm.until(lambda: bool(calm.order_of_calls()) and calm.lane().get("throttledUntil") is not None)
        until = calm.lane()["throttledUntil"]
        set_session(calm, "up", tells=True)
        await calm.until(lambda: calm.status("request-1") == "sent")
        assert calm.outbox("request-1")["sentAt"] >= until

    simulate(body)


# --- the lane itself


def test_of_a_pause_for_both_there_stays_the_throttles_share() -> None:
    throttled = Lane(state=LaneState.READY).throttled(until=START + MINUTE, now=START)
    both = replace(throttled.paused(until=START + 5 * MINUTE), ready_at=START + 5 * MINUTE)
    up = both.reconnected(now=START)
    assert (up.paused_until, up.ready_at, up.rate_factor) == (START + MINUTE, START + MINUTE, 0.5)
    assert both.reconnected(now=START + 2 * MINUTE).paused_until is None


def test_a_lane_that_waits_for_no_session_is_left_as_it_is() -> None:
    for lane in (
        Lane(),
        Lane().throttled(until=START + MINUTE, now=START),
        Lane(paused_until=START - MINUTE),
    ):
        assert lane.reconnected(now=START) is lane


def test_a_person_who_resumes_an_account_ends_both() -> None:
    lane = Lane().throttled(until=START + MINUTE, now=START).paused(until=START + 2 * MINUTE)
    resumed = lane.resumed(now=START)
    assert (resumed.paused_until, resumed.throttled_until) == (None, None)
