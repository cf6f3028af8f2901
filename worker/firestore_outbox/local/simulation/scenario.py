"""What happens in one run, drawn from its seed: who is there, what people do, and what goes wrong.

Each kind of trouble is in some runs and not in others, so that runs are unlike: most bugs need two or three troubles
together, and everything at once drowns them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.local.simulation.consent import OptOut, draw_consent
from firestore_outbox.local.simulation.day_caps import BEFORE_MIDNIGHT, draw_warm_up, warm_up_fields
from firestore_outbox.local.simulation.network import Luck
from firestore_outbox.local.simulation.operators import Act, draw_operators
from firestore_outbox.local.simulation.reminders import ReminderSpec, draw_reminders
from firestore_outbox.local.simulation.short_turns import NO_TROUBLES, draw_alone, draw_troubles, has_short_turns
from firestore_outbox.local.simulation.urgent import draw_beside
from firestore_outbox.local.simulation.user_events import EventSpec, draw_events, draw_stream
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings

PROVIDERS = ("simulated", "simulated-idempotent", "simulated-mute")
START = datetime(2026, 3, 1, tzinfo=UTC)
"""Of a world without reminders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSpec:
    account_id: str
    provider: str
    on_uncertain: str
    per_minute: float
    burst: int
    per_recipient_seconds: float
    concurrency: int
    recipient_hours: tuple[int, int] | None = None
    most_marketing: int | None = None
    """Messages of marketing runs for each recipient in a day."""
    warm_up: int | None = None
    """Messages on the first day, which ends while the world lasts; the next day has no limit. None: no cap."""

    def fields(self) -> dict[str, Any]:
        return self._consent_fields() | {
            **({} if self.warm_up is None else {"warmUp": warm_up_fields(self.warm_up)}),
            "provider": self.provider,
            "timezone": "UTC",
            "status": "active",
            "onUncertain": self.on_uncertain,
            "concurrency": self.concurrency,
            "pace": {
                "perMinute": self.per_minute,
                "burst": self.burst,
                "perRecipientSeconds": self.per_recipient_seconds,
            },
        }

    def _consent_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.recipient_hours is not None:
            fields["recipientHours"] = {"startHour": self.recipient_hours[0], "endHour": self.recipient_hours[1]}
        if self.most_marketing is not None:
            fields["frequencyCap"] = {"messages": self.most_marketing, "days": 1}
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSpec:
    at: float
    """Seconds from the beginning."""
    request_id: str
    account_id: str
    to: str
    parts: int
    send_after: float | None = None
    """Scheduled this number of seconds after `at`."""
    send_within: float | None = None
    """Its deadline, in seconds after `at`."""
    fault: str | None = None
    """How the document is malformed."""
    again_after: float | None = None
    """The same batch is written once more."""
    cancel_after: float | None = None
    priority: str | None = None
    """None: the document does not name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something at a time; `what` is one of the methods of `Play`."""

    at: float
    what: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    seed: int
    settings: Settings
    accounts: tuple[AccountSpec, ...]
    messages: tuple[MessageSpec, ...]
    happenings: tuple[Happening, ...]
    luck: Luck
    workers: int
    functions: int
    most_skew: timedelta
    has_wild_clocks: bool
    """Clocks differ by more than the leases are made for: order and pace cannot be promised."""
    lasts: float
    faulty_conversations: bool = False
    troubles: frozenset[str] = field(default_factory=frozenset)
    reminders: tuple[ReminderSpec, ...] = ()
    operators: tuple[Act, ...] = ()
    opt_outs: tuple[OptOut, ...] = ()
    events: tuple[EventSpec, ...] = ()
    """For a handler of the user's."""
    hold_room_bytes: int = ROOM_BYTES
    commit_delay: CommitDelay | None = None
    """Production's timestamps: a commit becomes visible this long after it was stamped. None: at the same moment."""
    functions_skew: timedelta = timedelta()
    """How far the clocks of functions are off, at most."""
    start: datetime = START

    @property
    def widest_skew(self) -> timedelta:
        """How far the clock of any process is off, at most: functions send too."""
        return max(self.most_skew, self.functions_skew)


def draw(seed: int) -> Scenario:
    random = Random(f"scenario {seed}")
    troubles = frozenset(name for name in TROUBLES if random.random() < 0.4)
    lasts = random.choice((60.0, 150.0, 300.0))
    accounts = tuple(_account(random, number) for number in range(random.choice((1, 1, 2, 3))))
    fan_out = draw_reminders(seed, tuple(account.account_id for account in accounts), troubles, lasts)
    if fan_out is not None:
        troubles -= fan_out.spared
        paces = fan_out.per_minute
        accounts = tuple(replace(one, per_minute=paces.get(one.account_id, one.per_minute)) for one in accounts)
    commit_delay = draw_commit_delay(seed)
    warm_up = None if fan_out is not None else draw_warm_up(seed)
    if warm_up is not None:
        accounts = (replace(accounts[0], warm_up=warm_up), *accounts[1:])
    is_short = has_short_turns(seed)
    of_functions = draw_troubles(seed, lasts) if is_short else NO_TROUBLES
    messages = (
        *_messages(random, accounts, troubles, lasts),
        *draw_conversations(seed, accounts, commit_delay),
        *(_alone(seed, accounts, commit_delay, lasts) if is_short else ()),
        *(() if fan_out is None else _beside(seed, fan_out.reminders, lasts)),
    )
    happenings: list[Happening] = []
    for name in sorted(troubles):
        happenings += TROUBLES[name](random, accounts, lasts)
    if fan_out is not None and fan_out.has_faulty_provider:
        happenings += _provider_faults(random, accounts, lasts)
    happenings += [Happening(at=at, what="crash_functions", arguments=(steps,)) for at, steps in of_functions.crashes]
    happenings += [
        Happening(at=at, what="stall_functions", arguments=(steps, seconds))
        for at, steps, seconds in of_functions.stalls
    ]
    consent = draw_consent(seed, () if fan_out is None else fan_out.reminders, lasts)
    accounts = tuple(
        replace(
            one,
            recipient_hours=consent.recipient_hours.get(one.account_id),
            most_marketing=consent.most_marketing.get(one.account_id),
        )
        for one in accounts
    )
    return Scenario(
        seed=seed,
        settings=_settings(random).model_copy(update={"short_turns": is_short}),
        accounts=accounts,
        messages=messages,
        happenings=tuple(sorted(happenings, key=lambda happening: happening.at)),
        luck=replace(_luck(random, troubles), late_event=of_functions.late_event),
        workers=random.choice((1, 2, 3)),
        functions=random.choice((1, 2)),
        most_skew=timedelta(seconds=random.choice((0, 0, 2))),
        has_wild_clocks="wild clocks" in troubles,
        lasts=lasts,
        faulty_conversations="inbound" in troubles and random.random() < 0.5,
        troubles=troubles,
        reminders=consent.reminders,
        operators=draw_operators(seed, lasts),
        opt_outs=consent.opt_outs,
        events=(*draw_events(seed, lasts), *draw_stream(seed, commit_delay, lasts)),
        hold_room_bytes=draw_hold_room(seed),
        commit_delay=commit_delay,
        functions_skew=of_functions.most_skew,
        start=fan_out.start if fan_out is not None else START if warm_up is None else BEFORE_MIDNIGHT,
    )


def draw_hold_room(seed: int) -> int:
    """From a sequence of its own, as operators are. In one world of four a lane has room for the hold of one thread, or
    for those of three: it is crowded as soon as something is tried again, or in flight beside others."""
    random = Random(f"room {seed}")
    return random.choice((110, 250)) if random.random() < 1 / 4 else ROOM_BYTES


def draw_commit_delay(seed: int) -> CommitDelay | None:
    """From a sequence of its own. Half of the worlds have production's timestamps; in half of those, one commit of
    fifty is slow."""
    random = Random(f"timestamps {seed}")
    if random.random() < 1 / 2:
        return None
    shortest, longest = random.choice(((0.005, 0.1), (0.01, 0.3), (0.01, 0.6)))
    return CommitDelay(random=random, shortest=shortest, longest=longest, slowest=random.choice((0.0, 4.0)))


def _alone(
    seed: int, accounts: tuple[AccountSpec, ...], commit_delay: CommitDelay | None, lasts: float
) -> list[MessageSpec]:
    made = []
    for one in draw_alone(seed, [account.account_id for account in accounts], lasts):
        after = 0.05 if commit_delay is None else commit_delay.longest + 0.05
        for turn, at in enumerate((one.at, one.at + after)[: 2 if one.is_followed else 1]):
            request_id = f"alone-{one.number:02d}-{turn}"
            made.append(MessageSpec(at=at, request_id=request_id, account_id=one.account_id, to=one.to, parts=1))
    return made


def _beside(seed: int, reminders: tuple[ReminderSpec, ...], lasts: float) -> list[MessageSpec]:
    runs = [(one.account_id, one.at + (one.fires_after or 0.0)) for one in reminders]
    return [
        MessageSpec(
            at=one.at,
            request_id=f"beside-{one.number:02d}",
            account_id=one.account_id,
            to=one.to,
            parts=1,
            priority=one.priority,
        )
        for one in draw_beside(seed, runs, lasts)
    ]


def draw_conversations(
    seed: int, accounts: tuple[AccountSpec, ...], commit_delay: CommitDelay | None
) -> list[MessageSpec]:
    """From a sequence of its own. In one of four worlds with production's timestamps, several people are written to at
    once, and each of them again as soon as the first message is acknowledged: documents appear behind those that a
    holder has read already, and their successors follow."""
    random = Random(f"conversations {seed}")
    if commit_delay is None or random.random() < 3 / 4:
        return []
    account = random.choice(accounts)
    made = []
    for number in range(20):
        first = random.uniform(0, 1)
        second = first + commit_delay.longest + random.uniform(0, 0.3)
        made += [
            MessageSpec(
                at=at,
                request_id=f"talk-{number:02d}-{turn}",
                account_id=account.account_id,
                to=f"+48{number}",
                parts=1,
            )
            for turn, at in enumerate((first, second))
        ]
    return made


def _settings(random: Random) -> Settings:
    return Settings(
        global_per_second=random.choice((0, 0, 0, 1, 3)),
        claim_page=random.choice((2, 5, 100)),
        lane_concurrency=random.choice((1, 2, 8)),
        quantum_seconds=random.choice((1, 10)),
        longest_hold_seconds=random.choice((45, 540)),
    )


def _account(random: Random, number: int) -> AccountSpec:
    return AccountSpec(
        account_id=f"account-{number}",
        provider=random.choice(PROVIDERS),
        on_uncertain=random.choice(("hold", "resend")),
        per_minute=random.choice((0, 0, 40, 120)),
        burst=random.choice((1, 1, 3)),
        per_recipient_seconds=random.choice((0, 0, 0, 3)),
        concurrency=random.choice((1, 3, 5)),
    )


def _messages(
    random: Random, accounts: tuple[AccountSpec, ...], troubles: frozenset[str], lasts: float
) -> list[MessageSpec]:
    count = random.choice((3, 6, 10, 15, 25))
    threads = random.choice((1, 2, 5))
    in_a_burst = random.random() < 0.6
    made = []
    for number in range(count):
        account = random.choice(accounts)
        made.append(
            MessageSpec(
                at=random.uniform(0, 2) if in_a_burst else random.uniform(0, lasts * 0.8),
                request_id=f"request-{number:04d}",
                account_id=account.account_id,
                to=f"+49{random.randrange(threads)}",
                parts=random.choice((1, 1, 1, 3)),
                send_after=random.choice((5.0, 60.0, 60.0)) if random.random() < 0.1 else None,
                send_within=random.uniform(1, 90) if random.random() < 0.1 else None,
                fault=random.choice(FAULTS) if "malformed" in troubles and random.random() < 0.2 else None,
                again_after=random.uniform(0, 60) if random.random() < 0.1 else None,
                cancel_after=random.uniform(0, 20) if "cancels" in troubles and random.random() < 0.25 else None,
            )
        )
    return made


FAULTS = ("no parts", "unknown part", "long text", "foreign thread", "number as text", "wrong id")
"""Each leaves a document that a lane can find. Those that it cannot are the trigger's, and tested elsewhere."""


def _luck(random: Random, troubles: frozenset[str]) -> Luck:
    high = random.choice((0.02, 0.1))
    return Luck(
        lost_request=high if "lost requests" in troubles else 0.0,
        lost_answer=high if "lost answers" in troubles else 0.0,
        contended=high if "contention" in troubles else 0.0,
        late=high if "late calls" in troubles else 0.0,
        latest_seconds=random.choice((2.0, 15.0)),
        dropped_event=random.choice((0.1, 0.5)) if "dropped events" in troubles else 0.0,
        doubled_event=0.3 if "doubled events" in troubles else 0.0,
        failed_event=0.2 if "failed events" in troubles else 0.0,
    )


# --- troubles that come at a time

Trouble = Callable[[Random, tuple[AccountSpec, ...], float], list[Happening]]


def _times(random: Random, lasts: float, most: int) -> list[float]:
    return [random.uniform(0, lasts) for _ in range(random.randint(1, most))]


def _none(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return []


def _strikes(random: Random, lasts: float, most: int) -> list[tuple[float, int | None]]:
    """At a time; or after a number of steps of the victim, which hits where much happens."""
    return [
        (at, random.randrange(1, 600)) if random.random() < 0.6 else (at, None)
        for at in [random.uniform(0, 3), *_times(random, lasts, most)]
    ]


def _crashes(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [Happening(at=at, what="crash_worker", arguments=(steps,)) for at, steps in _strikes(random, lasts, 4)]


def _function_crashes(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [Happening(at=at, what="crash_functions", arguments=(steps,)) for at, steps in _strikes(random, lasts, 3)]


def _stalls(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [
        Happening(at=at, what="stall_worker", arguments=(steps, random.choice((3.0, 30.0, 62.0, 90.0))))
        for at, steps in _strikes(random, lasts, 3)
    ]


def _wild_clocks(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [
        Happening(at=at, what="jump_clock", arguments=(random.choice((-30.0, -5.0, 5.0, 30.0)),))
        for at in _times(random, lasts, 4)
    ]


def _provider_faults(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    happenings = []
    for at in [0.0, *_times(random, lasts, 3)]:
        rate = random.choice((0.1, 0.5))
        happenings.append(Happening(at=at, what="provider_faults", arguments=(_faults(random, rate),)))
    return happenings


def _faults(random: Random, rate: float) -> Faults:
    choice: dict[str, dict[str, Any]] = {
        "throttles": {
            "throttleRate": rate,
            "throttleScope": random.choice(("recipient", "account", "app")),
            "retryAfterSeconds": random.choice((None, 1, 7)),
        },
        "errors": {
            "errorRate": rate,
            "errorCode": random.choice(("overloaded", "internal", "rejected", "session_down")),
        },
        "lost answers": {"lostResponseRate": rate},
        "errors after acceptance": {"acceptedErrorRate": rate},
        "hangs": {"hangRate": rate},
        "slow": {"latencyMs": random.choice((200, 3000)), "latencyJitterMs": random.choice((100, 9000))},
    }
    picked: dict[str, Any] = {}
    for name in random.sample(sorted(choice), k=random.randint(1, 2)):
        picked |= choice[name]
    picked |= _receipt_faults(random)
    return Faults(**picked)


def _receipt_faults(random: Random) -> dict[str, Any]:
    return {
        "receiptDelayMs": random.choice((0, 500, 60_000)),
        "receiptDuplicateRate": random.choice((0.0, 0.3)),
        "receiptShuffle": random.random() < 0.4,
        "receiptLossRate": random.choice((0.0, 0.0, 0.3)),
        "receiptFailedRate": random.choice((0.0, 0.0, 0.2)),
    }


def _receipt_trouble(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [Happening(at=0.0, what="provider_faults", arguments=(Faults(latencyMs=50, **_receipt_faults(random)),))]


def _outages(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    happenings = []
    for at in _times(random, lasts, 2):
        happenings += [
            Happening(at=at, what="provider_unreachable", arguments=(True,)),
            Happening(at=at + random.uniform(1, 30), what="provider_unreachable", arguments=(False,)),
        ]
    return happenings


def _pauses(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    happenings = []
    for at in _times(random, lasts, 2):
        account_id = random.choice(accounts).account_id
        happenings += [
            Happening(at=at, what="set_account", arguments=(account_id, "paused")),
            Happening(at=at + random.uniform(1, 60), what="set_account", arguments=(account_id, "active")),
        ]
    return happenings


def _revocations(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    account_id, at = random.choice(accounts).account_id, random.uniform(0, lasts)
    corrected = at + random.uniform(5, 60)
    return [
        Happening(at=at, what="credentials", arguments=(account_id, "revoked")),
        Happening(at=corrected, what="credentials", arguments=(account_id, "valid")),
        Happening(at=corrected + 1, what="set_account", arguments=(account_id, "active")),
    ]


def _inbound(random: Random, accounts: tuple[AccountSpec, ...], lasts: float) -> list[Happening]:
    return [
        Happening(at=at, what="inbound", arguments=(random.choice(accounts).account_id, f"+49{random.randrange(2)}"))
        for at in _times(random, lasts, 8)
    ]


TROUBLES: dict[str, Trouble] = {
    "cancels": _none,
    "contention": _none,
    "crashes": _crashes,
    "doubled events": _none,
    "dropped events": _none,
    "failed events": _none,
    "function crashes": _function_crashes,
    "inbound": _inbound,
    "late calls": _none,
    "lost answers": _none,
    "lost requests": _none,
    "malformed": _none,
    "outages": _outages,
    "pauses": _pauses,
    "provider faults": _provider_faults,
    "receipt trouble": _receipt_trouble,
    "revocations": _revocations,
    "stalls": _stalls,
    "wild clocks": _wild_clocks,
}
