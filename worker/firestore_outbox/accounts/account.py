"""The account: `accounts/{accountId}`, which says whether and how its messages may be sent.

People write this document; the worker reads it and makes one change of its own: it parks an account whose credentials
the provider refuses. Only a person ends that. While an account is paused, parked or outside its window, its messages
stay queued and nothing is lost.

    active   pause  -> paused      by a person
    active   park   -> parked      by the worker, on refused credentials
    paused   park   -> parked
    paused   resume -> active      by a person
    parked   resume -> active      by a person, who has mended the credentials
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from firestore_outbox.accounts.window import Window, is_open, next_open
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.checked_fields import TimeZone, sentence_of

DEFAULT_PER_MINUTE = 40.0
DEFAULT_CONCURRENCY = 3


class AccountStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    PARKED = "parked"


class OnUncertain(StrEnum):
    """What to do with a message when nobody can tell whether it was sent."""

    RESEND = "resend"
    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """All of it changes only when a person edits the account, but for `status`, which the worker may park."""

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
    paused_until: datetime | None = None
    """A pause that ends by itself, whatever `status` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a webhook finds the account. Changes only when a person edits the account."""

    account_id: str
    provider: str
    number: str | None
    """`providerNumber`: the phone number id or session that events name. None: an account from before this field, or
    one whose provider names none."""


def route_of(account_id: str, raw: Mapping[str, Any]) -> Route | None:
    """None: the document names no provider. Other faults of the document do not keep inbound messages away."""
    provider, number = raw.get("provider"), raw.get("providerNumber")
    if not isinstance(provider, str) or not provider:
        return None
    return Route(account_id=account_id, provider=provider, number=number if isinstance(number, str) else None)


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
    """Nothing is sent for it until a person mends it."""

    account_id: str
    sentence: str


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Pace(_Model):
    perMinute: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    burst: Annotated[int, Field(ge=1, le=100_000)] = 1
    perRecipientSeconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0


class _Window(_Model):
    startHour: Annotated[int, Field(ge=0, le=23)] = 6
    endHour: Annotated[int, Field(ge=1, le=24)] = 18


class _Document(_Model):
    provider: Annotated[str, Field(min_length=1)]
    timezone: TimeZone = "UTC"
    status: Annotated[AccountStatus, Field(strict=False)] = AccountStatus.ACTIVE
    pace: _Pace = _Pace()
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    onUncertain: Annotated[OnUncertain, Field(strict=False)] = OnUncertain.HOLD
    window: _Window | None = None
    pausedUntil: AwareDatetime | None = None
    providerNumber: Annotated[str, Field(min_length=1, max_length=128)] | None = None


def parse_account(
    account_id: str,
    raw: Mapping[str, Any],
    *,
    per_minute: float = DEFAULT_PER_MINUTE,
    concurrency: int = DEFAULT_CONCURRENCY,
) -> Account | InvalidAccount:
    """`per_minute` and `concurrency` are for an account that sets none."""
    try:
        document = _Document.model_validate(dict(raw))
    except ValidationError as error:
        sentence = f"{sentence_of(error.errors(include_url=False)[0])}."
        return InvalidAccount(account_id=account_id, sentence=sentence)
    except (TypeError, ValueError):
        return InvalidAccount(account_id=account_id, sentence="The document is not a set of fields.")
    hours = document.window
    if hours is not None and hours.startHour == hours.endHour:
        return InvalidAccount(account_id=account_id, sentence="window: startHour and endHour are the same.")
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
        paused_until=document.pausedUntil,
    )


def _window(hours: _Window, timezone: str) -> Window:
    return Window(start_hour=hours.startHour, end_hour=hours.endHour, zone=ZoneInfo(timezone))
