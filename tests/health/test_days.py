"""What forecasts expect of days with caps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window, window_end_at
from firestore_outbox.health.caps import DayCaps, WarmUp
from firestore_outbox.health.day_use import DayUse
from firestore_outbox.health.days import days_of, new_contacts_warning
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.reminders.forecast import Forecast, forecast

ZONE = ZoneInfo("UTC")
NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)
WINDOW = Window(start_hour=6, end_hour=18, zone=ZONE)
WARM_UP = WarmUp(start=50, factor=2, until=1000, since=date(2026, 3, 1))


def told(
    targets: int,
    caps: DayCaps | None,
    tier: int | None = None,
    use: DayUse | None = None,
    on_window_end: OnWindowEnd = OnWindowEnd.RESUME_NEXT_DAY,
) -> Forecast:
    return forecast(
        targets=targets,
        ahead=0,
        interval=timedelta(minutes=1) / 40,
        window=WINDOW,
        window_end=window_end_at(WINDOW, NINE),
        on_window_end=on_window_end,
        now=NINE,
        days=days_of(caps, tier, ZONE, use),
    )


def test_a_run_with_a_warm_up_ends_on_the_day_that_has_room_for_its_last_target() -> None:
    """50, 100, 200 and 400 go on four days; 250 of the fifth at 40 a minute from six o'clock."""
    found = told(1000, DayCaps(zone=ZONE, warm_up=WARM_UP))
    assert found.ends_at == datetime(2026, 3, 5, 6, 6, 15, tzinfo=UTC)
    assert found.warning is not None
    assert "its warm-up of 50 messages" in found.warning


def test_the_smallest_of_caps_and_tier_counts() -> None:
    caps = DayCaps(zone=ZONE, daily=500)
    assert told(1000, caps).ends_at == datetime(2026, 3, 2, 6, 12, 30, tzinfo=UTC)
    assert told(1000, caps, tier=250).ends_at == datetime(2026, 3, 4, 6, 6, 15, tzinfo=UTC)
    warning = told(1000, caps, tier=250).warning
    assert warning is not None
    assert "the provider's tier of 250 people a day" in warning


def test_what_was_used_of_the_present_day_is_not_there_any_more() -> None:
    caps, use = DayCaps(zone=ZONE, daily=500), DayUse(day=NINE.date(), sends=400)
    assert told(100, caps, use=use).ends_at == NINE + timedelta(minutes=2, seconds=30)
    assert told(101, caps, use=use).ends_at == datetime(2026, 3, 2, 6, 0, 1, 500_000, tzinfo=UTC)


def test_a_run_that_stops_at_its_window_is_warned_of() -> None:
    found = told(1000, DayCaps(zone=ZONE, daily=500), on_window_end=OnWindowEnd.STOP)
    assert found.warning is not None
    assert found.warning.endswith("the window closes 18:00")


def test_what_fits_into_the_day_is_forecast_as_without_a_cap() -> None:
    assert told(400, DayCaps(zone=ZONE, daily=500), tier=1000) == told(400, None)


def test_a_cap_that_would_take_years_says_so() -> None:
    assert told(1000, DayCaps(zone=ZONE, daily=1)).ends_at is None


def test_new_contacts_are_warned_of_only_if_they_may_exceed_the_cap() -> None:
    caps = DayCaps(zone=ZONE, new_contacts=20)
    assert new_contacts_warning(caps, 20) is None
    assert "it takes 3 days" in (new_contacts_warning(caps, 41) or "")
