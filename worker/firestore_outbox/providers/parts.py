"""The parts of one message, one after the other. The only loop over parts; an adapter sends one.

Parts that earlier attempts got accepted are skipped. The first answer that is not an acceptance ends the attempt, and
carries how many parts *this* attempt got accepted: the next one goes on after them. Between two parts is a random
pause, as between the messages of a person.

All parts share the time that one call may take, since the holder of a lease trusts it for no longer. A part is begun
only while half of that time is left; what remains goes in the next attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import assert_never

from firestore_outbox import log
from firestore_outbox.messages.address import name_of_recipient
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart, OutboxMessage, Part, SealedPart
from firestore_outbox.providers.media import (
    MediaContent,
    MediaDelivery,
    MediaHandle,
    MediaLink,
    MediaRefused,
    NoMedia,
    ReadyMedia,
    Upload,
    as_not_sent,
)
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Retryable,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.protocol import Profile

Sleep = Callable[[float], Awaitable[object]]

LEAST_TIME = timedelta(seconds=2)
"""A call that is given less would end in doubt rather than in an answer."""
_FILE_TOOK_TOO_LONG = "making its file ready took the time of one attempt; the next one finds it ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartJitter:
    """The pause between two parts: uniformly between these."""

    shortest: timedelta = timedelta(milliseconds=200)
    longest: timedelta = timedelta(milliseconds=500)

    def __post_init__(self) -> None:
        if not timedelta(0) <= self.shortest <= self.longest:
            raise ValueError(f"part jitter: {self.shortest} to {self.longest} is no range")

    def draw(self, random: Random) -> timedelta:
        return self.shortest + (self.longest - self.shortest) * random.random()


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePart:
    """One part of a message: what an adapter sends in one call."""

    account_id: str
    to: str
    """The recipient, as the provider names it."""
    part: Part
    correlation: Correlation
    media: ReadyMedia | None
    """The file of a media part, in the form of the profile's `media`. None for other parts."""
    limit: timedelta
    """The call must end within this time."""


SendPart = Callable[[OnePart], Awaitable[Outcome | MediaRefused]]
"""`Sent` when the part was accepted. `parts_sent` is left alone: counting is not its business."""


class PartSender:
    def __init__(
        self, *, jitter: PartJitter, random: Random, sleep: Sleep = asyncio.sleep, media: MediaDelivery | None = None
    ) -> None:
        self._jitter = jitter
        self._random = random
        self._sleep = sleep
        self._media = media or NoMedia()

    async def send(
        self,
        message: OutboxMessage,
        provider: str,
        profile: Profile,
        send_part: SendPart,
        *,
        upload: Upload | None = None,
        limit: timedelta,
    ) -> Outcome:
        if refused := _refusal(message, profile):
            return refused
        clock = asyncio.get_running_loop().time
        ends = clock() + limit.total_seconds()
        provider_message_id = message.provider_message_id or ""
        first = message.parts_sent
        for index in range(first, len(message.parts)):
            accepted = index - first
            if accepted:
                pause = self._jitter.draw(self._random).total_seconds()
                if ends - clock() - pause < limit.total_seconds() / 2:
                    return _out_of_time(index, len(message.parts), accepted)
                await self._sleep(pause)
                if ends - clock() < limit.total_seconds() / 2:  # the machine stood still meanwhile
                    return _out_of_time(index, len(message.parts), accepted)
            part = message.parts[index]
            if isinstance(part, SealedPart):
                return _STILL_SEALED
            one = _one_part(message, index, part, timedelta(seconds=ends - clock()))
            outcome = await self._send_one(one, _Asked(provider, profile, send_part, upload), ends)
            match outcome:
                case Sent():
                    provider_message_id = outcome.provider_message_id
                case Throttled() | Retryable() | Postponed() | Rejected() | AuthFailed() | NotConnected() | Unknown():
                    return replace(outcome, parts_sent=accepted)
                case _:
                    assert_never(outcome)
        return Sent(provider_message_id=provider_message_id)

    async def _send_one(self, one: OnePart, asked: _Asked, ends: float) -> Outcome:
        """With its file made ready, and once more with a new upload if the provider refuses the file's handle."""
        if not isinstance(one.part, MediaPart) or asked.profile.media is None:
            return _final(await _outcome_of(asked.send_part, one))
        for _ in range(2):
            media = await self._media.ready(
                one.account_id, asked.provider, one.part, asked.profile.media, asked.upload, limit=_left(ends)
            )
            if not isinstance(media, MediaContent | MediaHandle | MediaLink):
                return as_not_sent(media)
            if _left(ends) < LEAST_TIME:
                _done_with(media)
                return Postponed(code=ErrorCode.PROVIDER_TIMEOUT, detail=_FILE_TOOK_TOO_LONG, retry_after=timedelta(0))
            try:
                outcome = await _outcome_of(asked.send_part, replace(one, media=media, limit=_left(ends)))
            finally:
                _done_with(media)
            if not isinstance(outcome, MediaRefused) or not isinstance(media, MediaHandle):
                return _final(outcome)
            await self._media.forget(one.account_id, asked.provider, one.part, media)
        return _final(outcome)


def _done_with(media: ReadyMedia) -> None:
    if isinstance(media, MediaContent):
        media.done()


def _left(ends: float) -> timedelta:
    return timedelta(seconds=ends - asyncio.get_running_loop().time())


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an adapter gave to `send`."""

    provider: str
    profile: Profile
    send_part: SendPart
    upload: Upload | None


def _final(outcome: Outcome | MediaRefused) -> Outcome:
    if isinstance(outcome, MediaRefused):
        return Rejected(code=ErrorCode.MEDIA_MISSING, detail=f"the provider refused the file: {outcome.detail}")
    return outcome


async def _outcome_of(send_part: SendPart, one: OnePart) -> Outcome | MediaRefused:
    try:
        return await send_part(one)
    except Exception as error:  # noqa: BLE001 - the border: an adapter that broke may have sent before it did
        log.adapter_failed(one.account_id, error, request_id=one.correlation.request_id)
        return Unknown(detail=f"the adapter failed ({type(error).__name__})")


def _one_part(message: OutboxMessage, index: int, part: Part, limit: timedelta) -> OnePart:
    return OnePart(
        account_id=message.account_id,
        to=name_of_recipient(message.to),
        part=part,
        correlation=Correlation.of(message, index),
        media=None,
        limit=limit,
    )


_STILL_SEALED = Rejected(code=ErrorCode.CANNOT_OPEN, detail="the message reached its adapter sealed")


def _refusal(message: OutboxMessage, profile: Profile) -> Rejected | None:
    foreign = sorted({part.type for part in message.parts} - profile.part_types)
    if not foreign:
        return None
    takes = ", ".join(sorted(profile.part_types)) or "nothing"
    return Rejected(
        code=ErrorCode.INVALID_MESSAGE,
        detail=f"the account's provider takes no {' and no '.join(foreign)} (it takes {takes})",
    )


def _out_of_time(index: int, parts: int, accepted: int) -> Postponed:
    return Postponed(
        code=ErrorCode.PROVIDER_TIMEOUT,
        detail=f"{index} of {parts} parts were accepted in the time of one attempt; the next goes on after them",
        retry_after=timedelta(0),
        parts_sent=accepted,
    )
