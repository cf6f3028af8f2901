"""Recipients are written to within hours on their own clocks: from the target's zone, or the phone number's region."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.accounts.window import Window, are_open, opening_of_all
from firestore_outbox.consent.zones import hours_of, zones_of
from firestore_outbox.firestore.writes import update
from firestore_outbox.reminders.run import Command
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, remind, runs, until_ended

HOURS = {"startHour": 8, "endHour": 20}
DAY = timedelta(days=1)
NEW_YORK = {"id": "ny", "to": "+12124567890"}
TOKYO = {"id": "tokyo", "to": "1@g.us", "timezone": "Asia/Tokyo"}
BERLIN = {"id": "berlin", "to": "2@g.us", "timezone": "Europe/Berlin"}
MOSCOW = "+79161234567"


def window(zone: str) -> Window:
    return Window(start_hour=8, end_hour=20, zone=ZoneInfo(zone))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def outcomes(calm: Calm) -> dict[str, str]:
    found = calm.world.truth.collection("outbox").values()
    return {one["targetId"]: one.get("lastError", {}).get("code", one["status"]) for one in found}


def called_at(calm: Calm) -> dict[str, datetime]:
    return {call.to: call.at for call in calm.world.truth.calls if call.accepted}


# --- which zones


def test_a_numbers_region_tells_its_zones_and_an_address_without_one_tells_none() -> None:
    assert zones_of("+12124567890") == ("America/New_York",)
    assert zones_of("12124567890@c.us") == ("America/New_York",)
    assert zones_of("1203@g.us") == zones_of("+99912345678") == ()


def test_a_number_of_a_country_with_several_zones_has_one_of_each_time() -> None:
    russia = zones_of(MOSCOW)
    assert len(russia) > 5
    shown = [START.astimezone(ZoneInfo(zone)).utcoffset() for zone in russia]
    assert len(set(shown)) == len(shown)


def test_a_targets_own_zone_goes_before_its_number_and_an_unknown_region_has_the_accounts_hours() -> None:
    account = window("Asia/Kolkata")
    assert hours_of(account, "+12124567890", "Asia/Tokyo") == (window("Asia/Tokyo"),)
    assert hours_of(account, "1203@g.us", None) == (account,)


# --- which hours


def test_two_zones_in_one_country_are_open_only_while_both_are() -> None:
    hours = hours_of(window("UTC"), MOSCOW, None)
    opening = opening_of_all(hours, utc("2026-03-02T12:00"), until=utc("2026-03-04T00:00"))
    assert opening == utc("2026-03-03T06:00"), "08:00 in Kaliningrad, 18:00 in Kamchatka"
    assert are_open(hours, utc("2026-03-03T07:59"))
    assert not are_open(hours, utc("2026-03-03T08:00")), "20:00 in Kamchatka"


def test_zones_whose_hours_never_meet_have_no_opening() -> None:
    hours = (window("UTC"), window("Pacific/Fiji"))
    assert opening_of_all(hours, START, until=START + 10 * DAY) is None


@pytest.mark.parametrize(
    ("zone", "at", "opens"),
    [
        ("America/New_York", "2026-03-08T05:00", "2026-03-08T12:00"),  # the clock jumped forward at 02:00
        ("America/New_York", "2026-03-07T05:00", "2026-03-07T13:00"),
        ("Europe/Berlin", "2026-10-25T00:30", "2026-10-25T07:00"),  # 02:00 to 03:00 comes twice
        ("Europe/Berlin", "2026-10-24T00:30", "2026-10-24T06:00"),
    ],
)
def test_on_a_day_with_a_change_of_time_hours_open_when_the_recipients_clock_shows_them(
    zone: str, at: str, opens: str
) -> None:
    assert opening_of_all((window(zone),), utc(at), until=utc(at) + DAY) == utc(opens)


# --- a run


def test_a_target_outside_its_hours_waits_until_they_open_and_the_others_go_at_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(recipientHours=HOURS)
        await remind(calm, listed=[NEW_YORK, TOKYO, BERLIN])
        await until_ended(calm, within=DAY)
        assert set(outcomes(calm).values()) == {"sent"}
        at = called_at(calm)
        assert at[str(BERLIN["to"])] < START + timedelta(minutes=5)
        assert START + timedelta(hours=1) <= at[str(NEW_YORK["to"])] < START + timedelta(hours=1, minutes=5)
        assert START + timedelta(hours=11) <= at[str(TOKYO["to"])] < START + timedelta(hours=11, minutes=5)

    simulate(body)


def test_a_target_whose_hours_do_not_open_before_the_window_closes_is_skipped_with_outside_hours() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(recipientHours=HOURS)
        await remind(calm, listed=[NEW_YORK, TOKYO], window={"startHour": 11, "endHour": 15})
        await until_ended(calm, within=DAY)
        assert outcomes(calm) == {"ny": "sent", "tokyo": "outside_hours"}
        counts = only_run(calm)["counts"]
        assert (counts["sent"], counts["skipped"], counts["total"]) == (1, 1, 2)

    simulate(body)


def test_a_run_that_goes_on_the_next_day_sends_when_window_and_hours_are_open() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(recipientHours=HOURS)
        hours = {"startHour": 10, "endHour": 14}  # in Tokyo 19:00 to 23:00
        await remind(calm, listed=[TOKYO], window=hours, onWindowEnd="resumeNextDay")
        await until_ended(calm, within=2 * DAY)
        (at,) = called_at(calm).values()
        assert START + timedelta(hours=22) <= at < START + timedelta(hours=23)

    simulate(body)


def test_a_target_that_comes_back_from_a_pause_outside_its_hours_is_not_sent() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(recipientHours={"startHour": 6, "endHour": 13})
        slow: list[Any] = [{"id": f"t{n}", "to": f"{n}@g.us"} for n in range(30)]
        await calm.write(update("accounts/shop", {"pace": {"perMinute": 1}}, version=None))
        await remind(calm, listed=slow)
        await calm.until(lambda: calm.statuses()["sent"] >= 2)
        (run_id,) = runs(calm)
        control = calm.world.client.system.control
        await control.ask(run_id, Command.PAUSE)
        await calm.until(lambda: runs(calm)[run_id]["status"] == "paused")
        await calm.until(lambda: calm.world.clock() > START + timedelta(hours=1, minutes=1), within=2 * DAY)
        await control.ask(run_id, Command.RESUME)
        await until_ended(calm, within=2 * DAY)
        assert max(called_at(calm).values()) < START + timedelta(hours=1)
        assert set(outcomes(calm).values()) == {"sent", "outside_hours"}
        assert only_run(calm)["counts"]["skipped"] >= 25

    simulate(body)


def test_without_hours_no_document_has_any() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, listed=[NEW_YORK, TOKYO])
        await until_ended(calm)
        assert all("recipientHours" not in one for one in calm.world.truth.collection("outbox").values())
        assert set(outcomes(calm).values()) == {"sent"}

    simulate(body)
