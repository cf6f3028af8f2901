"""A reminder: `reminders/{reminderId}`, what to send to whom, when, and within which hours.

Whatever is wrong with one is said in words, by field. The schedule is data here; which instants it means is asked of a
calendar (reminders/calendar.py), and what to do about them is decided below:

    the next time is ahead                       sleep until then
    it has come                                  fire, for the time in the schedule and not for the moment we noticed
    it came more than `LATE` ago: missed         `skip`: pass over it; `runOnce`: fire for the last one missed
    no time is left                              the reminder has ended
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages.checked_fields import AccountId, TimeZone, fault, sentence_of
from firestore_outbox.messages.model import ClearParts, Part
from firestore_outbox.reminders.choices import Category, Missed, OnWindowEnd
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import Target
from firestore_outbox.reminders.targets import have_variables, inline_targets, without_values

LATE = timedelta(minutes=10)
"""A fire that is later than this was missed."""
MAX_INLINE_TARGETS = 5_000
"""In the document itself, which Firestore limits to 1 MiB."""


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _plausible(at: datetime) -> datetime:
    if not 2000 <= at.year < 2200:
        raise ValueError(f"the year {at.year} is not one that a reminder is for")
    return at


Time = Annotated[AwareDatetime, AfterValidator(_plausible)]


class Once(_Model):
    type: Literal["once"]
    at: Time


class Cron(_Model):
    type: Literal["cron"]
    cron: Annotated[str, StringConstraints(min_length=9, max_length=200)]
    """Five fields, in the reminder's zone."""


class Recurrence(_Model):
    type: Literal["rrule"]
    rrule: Annotated[str, StringConstraints(min_length=5, max_length=500)]
    """RFC 5545, without DTSTART: that is `start`."""
    start: Time


Schedule = Once | Cron | Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    reminder_id: str
    account_id: str
    parts: tuple[Part, ...]
    targets: tuple[Target, ...]
    """Those in the document; empty if they are in its subcollection."""
    window: Window
    schedule: Schedule
    on_window_end: OnWindowEnd
    missed: Missed
    status: ReminderStatus
    """A person pauses it; the worker ends it after its last fire."""
    created_at: datetime
    """No fire before it, except at a time that was itself asked for (`due`)."""
    last_fire_at: datetime | None = None
    """Moves with each fire, and with each one that is passed over."""
    is_personal: bool = False
    """Whether `{name}` in its parts stands for a variable of the target."""
    category: Category = Category.UTILITY
    rescheduled_at: datetime | None = None
    """When an edit last changed the schedule: times of the new one that had passed by then do not count."""


@dataclass(frozen=True, slots=True)
class InvalidReminder:
    reminder_id: str
    sentences: tuple[str, ...]
    account_id: str | None = None
    """As the document says; None if it says nothing usable."""

    def __str__(self) -> str:
        return " ".join(self.sentences)


# --- what is due ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fire:
    at: datetime
    """As the schedule says."""


@dataclass(frozen=True, slots=True)
class PassOver:
    """Missed, and not to be made up for. Goes on from `to`."""

    to: datetime


@dataclass(frozen=True, slots=True)
class SleepUntil:
    at: datetime


@dataclass(frozen=True, slots=True)
class Over:
    """No time is left."""


Calendar = Callable[[datetime], datetime | None]
"""The first time of the schedule after the one given; None if there is none."""


def due(reminder: Reminder, calendar: Calendar, now: datetime) -> Fire | PassOver | SleepUntil | Over:
    """For a reminder that is active."""
    at = calendar(_counted_from(reminder))
    if at is None:
        return Over()
    if at > now:
        return SleepUntil(at)
    last = _last_until(calendar, at, now)
    if now - last <= LATE:
        return Fire(last)  # of several that have come, the last one: the others were missed
    return Fire(last) if reminder.missed is Missed.RUN_ONCE else PassOver(last)


def _counted_from(reminder: Reminder) -> datetime:
    if reminder.last_fire_at is None:
        return _beginning(reminder)
    return (
        reminder.last_fire_at if reminder.rescheduled_at is None else max(reminder.last_fire_at, _beginning(reminder))
    )


def _beginning(reminder: Reminder) -> datetime:
    """Just before the first time that counts. "Now" has passed by the time it is written down, and counts all the same;
    the 09:00 of every day does not count for a reminder that was made at 09:05."""
    first = reminder.rescheduled_at or reminder.created_at
    match reminder.schedule:
        case Once(at=at):
            first = at
        case Recurrence(start=start) if first - LATE <= start <= first:
            first = start
    return first - timedelta(microseconds=1)


def _last_until(calendar: Calendar, at: datetime, now: datetime) -> datetime:
    """The last time until now, by halves: a reminder that was paused for a year may have missed half a million."""
    before = now
    while (following := calendar(at)) is not None and following <= now:
        at = following
        middle = at + (before - at) / 2
        later = calendar(middle)
        if later is not None and later <= now:
            at = later
        else:
            before = middle
    return at


# --- reading it ----------------------------------------------------------------------------------------------------


def _hour(least: int, most: int) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise fault(f"must be a whole hour from {least} to {most}")
        return value

    return BeforeValidator(check)


class _Hours(_Model):
    startHour: Annotated[int, _hour(0, 23)] = 6
    endHour: Annotated[int, _hour(1, 24)] = 18

    @model_validator(mode="after")
    def _is_a_window(self) -> _Hours:
        if self.startHour == self.endHour:
            raise ValueError("startHour and endHour are the same; for the whole day use 0 and 24")
        return self


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    accountId: AccountId
    parts: ClearParts
    targets: Annotated[list[Any], Field(max_length=MAX_INLINE_TARGETS)] = []
    timezone: TimeZone
    window: _Hours = _Hours()
    schedule: Annotated[Schedule, Field(discriminator="type")]
    onWindowEnd: Annotated[OnWindowEnd, Field(strict=False)] = OnWindowEnd.STOP
    missed: Annotated[Missed, Field(strict=False)] = Missed.SKIP
    category: Annotated[Category, Field(strict=False)] = Category.UTILITY
    status: Annotated[ReminderStatus, Field(strict=False)] = ReminderStatus.ACTIVE
    createdAt: AwareDatetime
    lastFireAt: AwareDatetime | None = None
    rescheduledAt: AwareDatetime | None = None
    personal: bool = False


def parse_reminder(reminder_id: str, raw: Mapping[str, Any]) -> Reminder | InvalidReminder:
    try:
        document = _Document.model_validate(dict(raw))
    except ValidationError as error:
        account_id, faults = raw.get("accountId"), error.errors(include_url=False)[:10]
        known = account_id if isinstance(account_id, str) else None
        return InvalidReminder(reminder_id, tuple(f"{sentence_of(fault)}." for fault in faults), known)
    except (TypeError, ValueError, RecursionError):
        return InvalidReminder(reminder_id, ("The document is not a set of fields.",))
    targets, parts = inline_targets(document.targets), tuple(document.parts)
    is_personal = document.personal or have_variables(targets)
    if is_personal and (lacking := without_values(parts, targets)):
        return InvalidReminder(reminder_id, lacking, document.accountId)
    hours = document.window
    return Reminder(
        reminder_id=reminder_id,
        account_id=document.accountId,
        parts=parts,
        targets=targets,
        is_personal=is_personal,
        window=Window(start_hour=hours.startHour, end_hour=hours.endHour, zone=ZoneInfo(document.timezone)),
        schedule=document.schedule,
        on_window_end=document.onWindowEnd,
        missed=document.missed,
        category=document.category,
        status=document.status,
        created_at=document.createdAt,
        last_fire_at=document.lastFireAt,
        rescheduled_at=document.rescheduledAt,
    )
