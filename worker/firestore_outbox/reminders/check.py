"""Whether a requested reminder is possible: judged as the worker will judge it, with every fault in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Any, assert_never

from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_reminder_id
from firestore_outbox.reminders.calendar import InvalidSchedule, calendar_of
from firestore_outbox.reminders.choices import Category
from firestore_outbox.reminders.reminder import (
    Calendar,
    Fire,
    InvalidReminder,
    Over,
    PassOver,
    Recurrence,
    Reminder,
    SleepUntil,
    due,
    parse_reminder,
)
from firestore_outbox.reminders.run import Target
from firestore_outbox.reminders.targets import have_variables, judge_targets, without_values

KNOWN = ("accountId", "parts", "timezone", "window", "schedule", "onWindowEnd", "missed", "category")
MAX_TARGETS = 100_000
INLINE = 500
"""Up to this number stand in the document itself."""
CHUNK = 1_000
CHUNK_BYTES = 400_000
"""Of one document of targets; Firestore takes 1 MiB."""
MOST_FAULTS = 10
SHOWN_FIRES = 3
OLDEST_HOURLY = timedelta(days=366)
"""A rule is followed from its start, each time that it is asked."""

NO_TIME_LEFT = "schedule: no time is left in it; all have passed, or there never was one."

_GOOD_OTHERWISE = {"accountId": "shop", "parts": [{"type": "text", "text": "x"}], "timezone": "UTC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReminder:
    reminder_id: str
    fields: Mapping[str, Any]
    """Those in `KNOWN`, as the document has them."""
    targets: Sequence[Any]
    """Addresses, or `{id, to, timezone?, variables?}`."""
    created_by: str


@dataclass(frozen=True, slots=True)
class Faulty:
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetDocuments:
    """Targets as documents have them: in the reminder itself, or in chunks beside it."""

    targets: tuple[Target, ...]

    @property
    def has_variables(self) -> bool:
        return have_variables(self.targets)

    @property
    def inline(self) -> list[dict[str, Any]]:
        return [] if self.chunks else [_target_fields(target) for target in self.targets]

    @property
    def chunks(self) -> list[list[dict[str, Any]]]:
        """Of the documents beside the reminder; none if all targets stand in it."""
        size = sum(_size(target) for target in self.targets)
        return list(_chunks(self.targets)) if len(self.targets) > INLINE or size > CHUNK_BYTES else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A reminder that can be."""

    reminder: Reminder
    """Without its targets, which are beside it."""
    targets: tuple[Target, ...]
    fires: tuple[datetime, ...]
    """The next few. With none it cannot be added; but a call that is repeated later may be of one that was."""
    digest: str
    """The same for requests that ask for the same."""

    @property
    def asked_for(self) -> dict[str, Any]:
        return asked_for(self.reminder)

    @property
    def documents(self) -> TargetDocuments:
        return TargetDocuments(self.targets)


def judge(new: NewReminder, now: datetime) -> Judged | Faulty:
    found: list[str] = []
    if not is_reminder_id(new.reminder_id):
        found.append(f"reminderId {faults.REMINDER_ID}.")
    unknown = [name[:60] for name in new.fields if name not in KNOWN]
    found += [f"{name} {faults.UNKNOWN}; known are {', '.join(KNOWN)}." for name in unknown]
    reminder = _parsed(new.reminder_id, new.fields, now)
    if isinstance(reminder, InvalidReminder):
        found += reminder.sentences
    fires = _fires_or_fault(new.fields, reminder, now)
    if isinstance(fires, str):
        found.append(fires)
    targets = judge_all_targets(new.targets)
    found += [fault for fault in targets if isinstance(fault, str)]
    if found or isinstance(reminder, InvalidReminder) or isinstance(fires, str):
        return Faulty(tuple(found))
    good = tuple(target for target in targets if isinstance(target, Target))
    if have_variables(good) and (lacking := without_values(reminder.parts, good)):
        return Faulty(lacking)
    return Judged(reminder=reminder, targets=good, fires=fires, digest=_digest(reminder, good))


def _parsed(reminder_id: str, fields: Mapping[str, Any], now: datetime) -> Reminder | InvalidReminder:
    asked = {name: value for name, value in fields.items() if name in KNOWN}
    return parse_reminder(reminder_id, {**asked, "createdAt": now})


def judge_all_targets(raw: Any) -> tuple[Target, ...] | tuple[str, ...]:
    """The targets; or what is wrong with them."""
    if not isinstance(raw, list | tuple):
        return (f"targets {faults.NO_LIST}.",)
    if len(raw) > MAX_TARGETS:
        return (f"targets: there are {len(raw):,}; at most {MAX_TARGETS:,} are allowed, in several reminders more.",)
    return judge_targets(raw, most_faults=MOST_FAULTS)


# --- its times


def _fires_or_fault(
    fields: Mapping[str, Any], reminder: Reminder | InvalidReminder, now: datetime
) -> tuple[datetime, ...] | str:
    """The schedule is looked at also if something else is wrong; not if it cannot be understood itself."""
    if isinstance(reminder, InvalidReminder):
        alone = _parsed(reminder.reminder_id, {**_GOOD_OTHERWISE, "schedule": fields.get("schedule")}, now)
        if isinstance(alone, InvalidReminder):
            return ()
        reminder = alone
    schedule = reminder.schedule
    if isinstance(schedule, Recurrence) and "HOURLY" in schedule.rrule.upper() and now - schedule.start > OLDEST_HOURLY:
        return "schedule.start: more than a year ago is too long for FREQ=HOURLY; choose a later one."
    try:
        return next_fires(reminder, now)
    except InvalidSchedule as error:
        return f"schedule: {error}."


def next_fires(reminder: Reminder, now: datetime) -> tuple[datetime, ...]:
    """As if it were active. May be asked of anything that could be parsed, so the schedule may be at fault."""
    calendar = calendar_of(reminder.schedule, reminder.window.zone)
    decision = due(reminder, calendar, now)
    match decision:
        case Fire(at=at) | SleepUntil(at=at):
            return (at, *islice(_after(calendar, at), SHOWN_FIRES - 1))
        case PassOver(to=to):
            return tuple(islice(_after(calendar, to), SHOWN_FIRES))
        case Over():
            return ()
        case _:
            assert_never(decision)


def _after(calendar: Calendar, at: datetime) -> Iterator[datetime]:
    following = calendar(at)
    while following is not None:
        yield following
        following = calendar(following)


# --- as it is written


def asked_for(reminder: Reminder) -> dict[str, Any]:
    """The fields that never change, each written in one way."""
    schedule = reminder.schedule.model_dump()
    return {
        "accountId": reminder.account_id,
        "parts": [part.model_dump(exclude_none=True) for part in reminder.parts],
        "timezone": reminder.window.zone.key,
        "window": {"startHour": reminder.window.start_hour, "endHour": reminder.window.end_hour},
        "schedule": {
            name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in schedule.items()
        },
        "onWindowEnd": reminder.on_window_end.value,
        "missed": reminder.missed.value,
        "category": reminder.category.value,
    }


def _digest(reminder: Reminder, targets: Sequence[Target]) -> str:
    """Without a category as it was before there was one: a reminder that is added again has the same digest."""
    asked = asked_for(reminder)
    if reminder.category is Category.UTILITY:
        del asked["category"]
    content = [asked, [_content(target) for target in targets]]
    return sha256(json.dumps(content, sort_keys=True, default=datetime.isoformat).encode()).hexdigest()


def _content(target: Target) -> list[Any]:
    """Without variables as it was before there were any: a reminder that is added again has the same digest."""
    plain: list[Any] = [target.target_id, target.to]
    if target.timezone is not None:
        plain.append(target.timezone)
    return [*plain, dict(target.variables)] if target.variables else plain


def _target_fields(target: Target) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": target.target_id, "to": target.to}
    if target.timezone is not None:
        plain["timezone"] = target.timezone
    return {**plain, "variables": dict(target.variables)} if target.variables else plain


def _size(target: Target) -> int:
    values = sum(len(name.encode()) + len(value.encode()) + 10 for name, value in target.variables.items())
    return len(target.target_id.encode()) + len(target.to.encode()) + len(target.timezone or "") + 30 + values


def _chunks(targets: Sequence[Target]) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    size = 0
    for target in targets:
        size += _size(target)
        if chunk and (len(chunk) == CHUNK or size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], _size(target)
        chunk.append(_target_fields(target))
    yield chunk
