"""The account: `accounts/{accountId}`, which says whether and how its messages may be sent.

People write this document; the worker reads it and makes one change of its own: it parks an account whose credentials
the provider refuses. Only a person ends that. While an account is paused, parked or outside its window, its messages
stay queued and nothing is lost.

    active   pause  -> paused      by a person
    active   park   -> parked      by the worker, on refused credentials
    paused   park   -> parked
    paused   resume -> active      by a person
    parked   resume -> active      by a person, who has corrected the credentials
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from firestore_outbox.accounts.retention import LEAST_DAYS, MOST_DAYS
from firestore_outbox.accounts.window import Window, is_open, next_open
from firestore_outbox.consent.frequency import FrequencyCap
from firestore_outbox.consent.words import DEFAULT, LONGEST, Words, words_of
from firestore_outbox.health.caps import DayCaps, WarmUp
from firestore_outbox.health.refusals import PauseRunsAt
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.checked_fields import TimeZone, sentence_of
from firestore_outbox.messages.model import Language, Name, TemplatePart
from firestore_outbox.messages.template_values import Params
from firestore_outbox.plans.plan import NO_PLAN, PlanTerm, term_of

DEFAULT_PER_MINUTE = 40.0
DEFAULT_CONCURRENCY = 3
MOST_A_DAY = 1_000_000
"""Messages: more than any account sends in a day."""


class AccountStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    PARKED = "parked"


class OnUncertain(StrEnum):
    """What to do with a message if it is unknown whether it was sent."""

    RESEND = "resend"
    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All of it changes only when a person edits the account, except for `status`, which the worker may park."""

    account_id: str
    provider: str
    status: AccountStatus = AccountStatus.ACTIVE
    cap: Cap | None
    """`pace.perMinute` and `pace.burst`; None is no pace."""
    per_recipient: timedelta = timedelta(0)
    """The least time between two messages to one recipient."""
    concurrency: int = DEFAULT_CONCURRENCY
    on_uncertain: OnUncertain = OnUncertain.HOLD
    window: Window | None = None
    recipient_hours: Window | None = None
    """`recipientHours`: when recipients of runs may be written to, on their own clocks. The zone is the account's, for
    those whose zone is unknown. None: at any hour."""
    frequency_cap: FrequencyCap | None = None
    """`frequencyCap`: how many targets of marketing runs a recipient may get. None: any number."""
    fallback_template: TemplatePart | None = None
    """`fallbackTemplate`: what goes in place of a free-form message that the provider refuses because the recipient has
    not written lately. None: such a message fails."""
    paused_until: datetime | None = None
    """A pause that ends by itself, whatever `status` says."""
    is_suppressing: bool = False
    """Whether some address opted out, ever. The worker sets it."""
    retention: timedelta | None = None
    """`retentionDays`: how long its messages are kept after their end. None: for ever."""
    caps: DayCaps | None = None
    """`dailyCap`, `warmUp` and `newContactsPerDay`: how much it sends in a day. None: as much as the pace allows."""
    tier: int | None = None
    """`tier`: recipients in 24 hours to whom the provider lets it write first. Only the forecast asks it. None: any
    number."""
    pause_runs_at: PauseRunsAt | None = None
    """`pauseRunsAt`: how much of a run the provider may refuse before the run pauses itself. None: all of it."""
    notify_url: str | None = None
    """`notify.webhook`: where notifications about runs are posted; None: nowhere."""
    plan: PlanTerm = NO_PLAN
    """The plan whose limits apply (plans/plan.py). An operator or Stripe's events change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a webhook finds the account. Changes only when a person edits the account."""

    account_id: str
    provider: str
    number: str | None
    """`providerNumber`: the phone number id or session that events name. None: an account from before this field, or
    one whose provider names none."""
    sealing: Mapping[str, Any] | None = None
    """The key that seals what arrives; None: the account is not sealed. As the document has it, so that a damaged key
    is met when it is used: nothing may be stored in clear in its place."""
    opt_out: Words = DEFAULT
    """`optOut`: the words with which people opt out."""


def route_of(account_id: str, raw: Mapping[str, Any]) -> Route | None:
    """None: the document names no provider. Other faults of the document do not keep inbound messages away."""
    provider, number = raw.get("provider"), raw.get("providerNumber")
    if not isinstance(provider, str) or not provider:
        return None
    sealing = raw.get("sealing")
    return Route(
        account_id=account_id,
        provider=provider,
        number=number if isinstance(number, str) else None,
        sealing=sealing if sealing is None or isinstance(sealing, Mapping) else {},
        opt_out=words_of(raw.get("optOut")),
    )


class Hindrance(StrEnum):
    PARKED = "parked"
    PAUSED = "paused"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Open:
    """Messages may be sent."""


@dataclass(frozen=True, slots=True)
class Closed:
    because: Hindrance
    until: datetime | None
    """None: until a person resumes it."""


def sending(account: Account, at: datetime) -> Open | Closed:
    """Whether the account may send at that time."""
    if account.status is AccountStatus.PARKED:
        return Closed(Hindrance.PARKED, None)
    if account.paused_until is None and account.status is AccountStatus.PAUSED:
        return Closed(Hindrance.PAUSED, None)
    if account.paused_until is not None and account.paused_until > at:
        return Closed(Hindrance.PAUSED, account.paused_until)
    if account.window is not None and not is_open(account.window, at):
        return Closed(Hindrance.WINDOW, next_open(account.window, at))
    return Open()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidAccount:
    """Nothing is sent for it until a person corrects it."""

    account_id: str
    sentence: str


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class Pace(_Model):
    perMinute: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    burst: Annotated[int, Field(ge=1, le=100_000)] = 1
    perRecipientSeconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0


class Hours(_Model):
    startHour: Annotated[int, Field(ge=0, le=23)] = 6
    endHour: Annotated[int, Field(ge=1, le=24)] = 18


class Frequency(_Model):
    messages: Annotated[int, Field(ge=1, le=100)]
    days: Annotated[int, Field(ge=1, le=365)]


class OptOut(_Model):
    off: bool = False
    languages: list[Annotated[str, Field(min_length=2, max_length=10)]] | None = None
    words: list[Annotated[str, Field(min_length=1, max_length=LONGEST)]] | None = None


class Notify(_Model):
    webhook: Annotated[str, Field(pattern=r"^https?://[^\s@]+$", max_length=2_000)] | None = None


def _is_date(text: str) -> str:
    date.fromisoformat(text)
    return text


class FallbackTemplate(_Model):
    name: Name
    language: Language
    params: Params | None = None


class WarmUpSettings(_Model):
    startPerDay: Annotated[int, Field(ge=1, le=MOST_A_DAY)]
    factor: Annotated[float, Field(ge=1.01, le=10, allow_inf_nan=False)] = 1.5
    untilPerDay: Annotated[int, Field(ge=1, le=MOST_A_DAY)]
    since: Annotated[str, Field(pattern=r"^20\d\d-\d\d-\d\d$"), AfterValidator(_is_date)] | None = None


class Refusals(_Model):
    percent: Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)] = 20
    outcomes: Annotated[int, Field(ge=10, le=10_000)] = 50


class AccountSettings(_Model):
    provider: Annotated[str, Field(min_length=1)]
    timezone: TimeZone = "UTC"
    status: Annotated[AccountStatus, Field(strict=False)] = AccountStatus.ACTIVE
    pace: Pace = Pace()
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    onUncertain: Annotated[OnUncertain, Field(strict=False)] = OnUncertain.HOLD
    window: Hours | None = None
    recipientHours: Hours | None = None
    frequencyCap: Frequency | None = None
    fallbackTemplate: FallbackTemplate | None = None
    dailyCap: Annotated[int, Field(ge=1, le=MOST_A_DAY)] | None = None
    warmUp: WarmUpSettings | None = None
    newContactsPerDay: Annotated[int, Field(ge=1, le=MOST_A_DAY)] | None = None
    tier: Annotated[int, Field(ge=1, le=MOST_A_DAY)] | None = None
    pauseRunsAt: Refusals | None = None
    pausedUntil: AwareDatetime | None = None
    providerNumber: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    optOut: OptOut | None = None
    notify: Notify | None = None
    plan: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    retentionDays: Annotated[int, Field(ge=LEAST_DAYS, le=MOST_DAYS)] | None = None


def parse_account(
    account_id: str,
    raw: Mapping[str, Any],
    *,
    per_minute: float = DEFAULT_PER_MINUTE,
    concurrency: int = DEFAULT_CONCURRENCY,
) -> Account | InvalidAccount:
    """`per_minute` and `concurrency` are for an account that sets none."""
    try:
        document = AccountSettings.model_validate(dict(raw))
    except ValidationError as error:
        sentence = f"{sentence_of(error.errors(include_url=False)[0])}."
        return InvalidAccount(account_id=account_id, sentence=sentence)
    except (TypeError, ValueError):
        return InvalidAccount(account_id=account_id, sentence="The document is not a set of fields.")
    hours = document.window
    if hours is not None and hours.startHour == hours.endHour:
        return InvalidAccount(account_id=account_id, sentence="window: startHour and endHour are the same.")
    quiet = document.recipientHours
    if quiet is not None and quiet.startHour == quiet.endHour:
        return InvalidAccount(account_id=account_id, sentence="recipientHours: startHour and endHour are the same.")
    pace = document.pace
    return Account(
        account_id=account_id,
        provider=document.provider,
        status=document.status,
        cap=Cap.per_minute(per_minute if pace.perMinute is None else pace.perMinute, burst=pace.burst),
        per_recipient=timedelta(seconds=pace.perRecipientSeconds),
        concurrency=document.concurrency or concurrency,
        on_uncertain=document.onUncertain,
        window=None if hours is None else _window(hours, document.timezone),
        recipient_hours=None if quiet is None else _window(quiet, document.timezone),
        frequency_cap=_frequency_cap(document.frequencyCap),
        fallback_template=_template(document.fallbackTemplate),
        caps=_caps(document),
        tier=document.tier,
        pause_runs_at=_pause_runs_at(document.pauseRunsAt),
        paused_until=document.pausedUntil,
        retention=None if document.retentionDays is None else timedelta(days=document.retentionDays),
        is_suppressing=raw.get("suppressing") is True,
        notify_url=None if document.notify is None else document.notify.webhook,
        plan=term_of(raw),
    )


def _frequency_cap(given: Frequency | None) -> FrequencyCap | None:
    return None if given is None else FrequencyCap(messages=given.messages, days=given.days)


def _caps(document: AccountSettings) -> DayCaps | None:
    """None: the day has no limit."""
    ramp = document.warmUp
    if ramp is None and document.dailyCap is None and document.newContactsPerDay is None:
        return None
    since = None if ramp is None or ramp.since is None else date.fromisoformat(ramp.since)
    return DayCaps(
        zone=ZoneInfo(document.timezone),
        daily=document.dailyCap,
        warm_up=None
        if ramp is None
        else WarmUp(start=ramp.startPerDay, factor=ramp.factor, until=ramp.untilPerDay, since=since),
        new_contacts=document.newContactsPerDay,
    )


def _pause_runs_at(given: Refusals | None) -> PauseRunsAt | None:
    return None if given is None else PauseRunsAt(percent=given.percent, outcomes=given.outcomes)


def _template(given: FallbackTemplate | None) -> TemplatePart | None:
    if given is None:
        return None
    return TemplatePart(type="template", name=given.name, language=given.language, params=given.params or ())


def _window(hours: Hours, timezone: str) -> Window:
    return Window(start_hour=hours.startHour, end_hour=hours.endHour, zone=ZoneInfo(timezone))
