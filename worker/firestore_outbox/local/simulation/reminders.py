"""The reminders of one world, drawn from its seed: what fires when, to whom, in which hours, and what people ask of it.

Windows are made of whole hours, and a world lasts minutes. So a world with reminders begins shortly before an hour, and
the hours are chosen so that something happens then: a window closes, opens, or closes for one hour only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window, is_open

THE_HOUR = datetime(2026, 3, 1, 6, tzinfo=UTC)

HOURS: dict[str, tuple[int, int]] = {
    "always open": (0, 24),
    "closes": (0, 6),
    "opens": (6, 18),
    "shut for an hour": (7, 6),
}
RESUMES_WITHIN = timedelta(hours=1, minutes=10)
"""Of the windows that close, those that a run waits for open again within this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks of the runs of a reminder: pause, resume, cancel, retry."""

    after: float
    """Seconds after the first of them was made."""
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderSpec:
    at: float
    """Seconds from the beginning."""
    reminder_id: str
    account_id: str
    parts: int
    inline: int
    """Targets in the document itself."""
    chunks: tuple[int, ...]
    """Targets in documents of their own."""
    has_doubles: bool
    """The first target of each chunk was listed before."""
    fires_after: float | None
    """Once, this number of seconds after `at`; None: each minute."""
    hours: tuple[int, int]
    on_window_end: str
    asked: tuple[Asked, ...]
    zones: tuple[str | None, ...] = (None,)
    """Of the targets, in turn; None: the target does not name one."""
    category: str = "utility"

    @property
    def resumes(self) -> bool:
        return self.on_window_end == "resumeNextDay"

    def targets(self) -> tuple[list[dict[str, str]], list[list[dict[str, str]]]]:
        """Those in the document, and those of each chunk."""
        made = 0
        inline = [self._target(number) for number in range(self.inline)]
        made += self.inline
        chunks = []
        for size in self.chunks:
            doubled = [self._target(0)] if self.has_doubles and made else []
            chunks.append([*doubled, *(self._target(number) for number in range(made, made + size))])
            made += size
        return inline, chunks

    @staticmethod
    def address(number: int) -> str:
        """The first few recipients are those that people write to as well."""
        return f"+49{number}"

    def zone_of(self, target_id: str) -> str | None:
        return self.zones[int(target_id.removeprefix("target-")) % len(self.zones)]

    def _target(self, number: int) -> dict[str, str]:
        target_id = f"target-{number}"
        target, zone = {"id": target_id, "to": self.address(number)}, self.zone_of(target_id)
        return target if zone is None else {**target, "timezone": zone}

    @property
    def window(self) -> Window:
        return Window(start_hour=self.hours[0], end_hour=self.hours[1], zone=ZoneInfo("UTC"))

    def is_open(self, at: datetime) -> bool:
        return is_open(self.window, at)

    @property
    def total(self) -> int:
        return self.inline + sum(self.chunks)

    def fields(self, now: datetime) -> dict[str, Any]:
        schedule: dict[str, Any] = {"type": "cron", "cron": "* * * * *"}
        if self.fires_after is not None:
            schedule = {"type": "once", "at": now + timedelta(seconds=self.fires_after)}
        return {
            "accountId": self.account_id,
            "targets": self.targets()[0],
            "parts": [{"type": "text", "text": f"part {number}"} for number in range(self.parts)],
            "timezone": "UTC",
            "window": {"startHour": self.hours[0], "endHour": self.hours[1]},
            "schedule": schedule,
            "onWindowEnd": self.on_window_end,
            "missed": "runOnce",
            "category": self.category,
            "status": "active",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """What reminders add to a world."""

    reminders: tuple[ReminderSpec, ...]
    until_the_hour: timedelta
    """From the beginning of the world."""
    per_minute: dict[str, float]
    """accountId -> its pace, where the world's own would leave nothing to be caught in the middle of."""
    spared: frozenset[str]
    """Troubles that the world does without: a run goes through many hands, and should get somewhere."""
    has_faulty_provider: bool
    """Once more, and earlier: there must be something to try again."""

    @property
    def start(self) -> datetime:
        return THE_HOUR - self.until_the_hour


def draw_reminders(seed: int, account_ids: tuple[str, ...], troubles: Collection[str], lasts: float) -> FanOut | None:
    """From a sequence of its own: a world without any is what it was before there were reminders."""
    random = Random(f"reminders {seed}")
    count = random.choice((0, 0, 1, 1, 2))
    if not count:
        return None
    hour = lasts * random.uniform(0.3, 0.95)
    return FanOut(
        reminders=tuple(_reminder(random, number, account_ids, lasts, hour) for number in range(count)),
        until_the_hour=timedelta(seconds=hour),
        per_minute={account_id: random.choice((20, 40, 60)) for account_id in account_ids if random.random() < 0.7},
        spared=frozenset(name for name in sorted(troubles) if random.random() < 0.5),
        has_faulty_provider=random.random() < 0.4,
    )


def _reminder(random: Random, number: int, account_ids: tuple[str, ...], lasts: float, hour: float) -> ReminderSpec:
    hours = random.choice(("always open", "closes", "closes", "opens", "shut for an hour", "shut for an hour"))
    chunks = tuple(random.choice((1, 3, 8)) for _ in range(random.choice((0, 0, 1, 3, 5))))
    # Mostly so that the hour comes while it is at work.
    at = max(0.0, hour - random.uniform(-2, 60)) if random.random() < 0.8 else random.uniform(0, lasts * 0.5)
    fires_after = random.choice((0.0, 0.0, random.uniform(0, 20))) if random.random() < 0.8 else None
    return ReminderSpec(
        at=at,
        reminder_id=f"reminder-{number}",
        account_id=random.choice(account_ids),
        parts=random.choice((1, 1, 1, 3)),
        inline=random.choice((1, 4, 10, 30)) if not chunks or random.random() < 0.3 else 0,
        chunks=chunks,
        has_doubles=random.random() < 0.3,
        fires_after=fires_after,
        hours=HOURS[hours],
        on_window_end="resumeNextDay" if hours == "shut for an hour" else "stop",
        asked=_asked(random, lasts) if random.random() < 0.6 else (),
    )


def _asked(random: Random, lasts: float) -> tuple[Asked, ...]:
    """Shortly one after the other, in the midst of the work; or at leisure."""
    within = random.choice((0.3, 2.0, 10.0, lasts / 3))
    times = sorted(random.uniform(0, within) for _ in range(random.choice((1, 3, 6))))
    if random.random() < 0.5:  # to and fro
        return tuple(Asked(after=after, command=("pause", "resume")[place % 2]) for place, after in enumerate(times))
    commands = ("pause", "pause", "resume", "cancel", "retry")
    return tuple(Asked(after=after, command=random.choice(commands)) for after in times)
