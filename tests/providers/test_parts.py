"""The parts of a message, one after the other, with pauses, within one limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from firestore_emulator import virtual_time
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart, TemplatePart
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.parts import OnePart, PartJitter, PartSender
from firestore_outbox.providers.protocol import PartType, Profile
from tests.providers.support import LIMIT, START, message, text

THREE = (text("one"), text("two"), text("three"))
EVERYTHING: frozenset[PartType] = frozenset({"text", "media", "template"})


def profile(part_types: frozenset[PartType] = EVERYTHING) -> Profile:
    return Profile(
        capability=Capability(resend_safe=False, echoes_request_id=True),
        part_types=part_types,
        media=None,
        throttle_scopes=frozenset(),
    )


class Adapter:
    """Accepts each part, except those it has another answer for."""

    def __init__(self, answers: dict[int, Outcome | Exception] | None = None, takes_seconds: float = 0) -> None:
        self.answers = answers or {}
        self.takes_seconds = takes_seconds
        self.sent: list[OnePart] = []
        self.naps: list[float] = []

    async def __call__(self, one: OnePart) -> Outcome:
        self.sent.append(one)
        await asyncio.sleep(self.takes_seconds)
        answer = self.answers.get(one.correlation.part, Sent(provider_message_id=f"id-{one.correlation.part}"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(seconds)

    def sender(self, random: Random | None = None) -> PartSender:
        return PartSender(jitter=PartJitter(), random=random or Random(1), sleep=self.nap)


async def test_all_parts_are_sent_in_order_and_the_last_ones_id_is_kept() -> None:
    adapter = Adapter()
    sender = PartSender(jitter=PartJitter(), random=Random(1), sleep=lambda _: asyncio.sleep(0))
    outcome = await sender.send(message(parts=THREE), "any", profile(), adapter, limit=LIMIT)
    assert outcome == Sent(provider_message_id="id-2")
    assert [one.part for one in adapter.sent] == list(THREE)
    assert [one.correlation for one in adapter.sent] == [
        Correlation(request_id="request-1", part=index, parts=3) for index in range(3)
    ]


@pytest.mark.parametrize(("draw", "pause"), [(0.0, 0.2), (0.5, 0.35), (1.0, 0.5)])
def test_the_pause_between_parts_is_drawn_between_200_and_500_ms(draw: float, pause: float) -> None:
    class Drawn(Random):
        def random(self) -> float:
            return draw

    adapter = Adapter()

    async def story() -> None:
        await adapter.sender(Drawn()).send(message(parts=THREE), "any", profile(), adapter, limit=LIMIT)

    virtual_time.run(story(), seed=1, start=START)
    assert adapter.naps == pytest.approx([pause, pause])


async def test_a_message_of_one_part_is_not_paused() -> None:
    adapter = Adapter()
    await adapter.sender().send(message(), "any", profile(), adapter, limit=LIMIT)
    assert adapter.naps == []


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Throttled(scope=Scope.ACCOUNT, detail="", parts_sent=n),
        lambda n: Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="", parts_sent=n),
        lambda n: Rejected(code=ErrorCode.REJECTED, detail="", parts_sent=n),
        lambda n: AuthFailed(detail="", parts_sent=n),
        lambda n: NotConnected(detail="", parts_sent=n),
        lambda n: Unknown(detail="", parts_sent=n),
    ],
)
@pytest.mark.parametrize("already", [0, 1])
def test_the_first_part_that_is_not_accepted_ends_the_attempt_and_the_accepted_ones_are_counted(
    make: Callable[[int], Outcome], already: int
) -> None:
    adapter = Adapter({2: make(0)})

    async def story() -> Outcome:
        letter = message(parts=THREE, parts_sent=already)
        return await adapter.sender().send(letter, "any", profile(), adapter, limit=LIMIT)

    assert virtual_time.run(story(), seed=1, start=START) == make(2 - already)
    assert [one.correlation.part for one in adapter.sent] == list(range(already, 3))


async def test_an_adapter_that_breaks_leaves_its_part_in_doubt() -> None:
    adapter = Adapter({0: KeyError("bug")})
    outcome = await adapter.sender().send(message(), "any", profile(), adapter, limit=LIMIT)
    assert outcome == Unknown(detail="the adapter failed (KeyError)")


async def test_a_part_that_the_provider_does_not_take_is_rejected_before_anything_is_sent() -> None:
    adapter = Adapter()
    media = MediaPart(type="media", mediaId="m", mimeType="image/png")
    template = TemplatePart(type="template", name="n", language="en", params=())
    letter = message(parts=(text(), media, template))
    outcome = await adapter.sender().send(letter, "any", profile(frozenset({"text"})), adapter, limit=LIMIT)
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.INVALID_MESSAGE
    assert "takes no media and no template" in outcome.detail
    assert adapter.sent == []


async def test_a_message_whose_parts_are_all_sent_makes_no_call() -> None:
    adapter = Adapter()
    outcome = await adapter.sender().send(message(parts=THREE, parts_sent=3), "any", profile(), adapter, limit=LIMIT)
    assert outcome == Sent(provider_message_id="")
    assert adapter.sent == []


def test_no_part_is_begun_in_the_second_half_of_the_limit() -> None:
    adapter = Adapter(takes_seconds=6)

    async def story() -> Outcome:
        return await adapter.sender().send(message(parts=THREE), "any", profile(), adapter, limit=LIMIT)

    outcome = virtual_time.run(story(), seed=1, start=START)
    assert isinstance(outcome, Postponed)
    assert (outcome.retry_after, outcome.parts_sent) == (timedelta(0), 2)
    assert adapter.sent[0].limit == LIMIT
    assert LIMIT / 2 <= adapter.sent[1].limit <= LIMIT - timedelta(seconds=6)


def test_no_part_is_begun_when_the_machine_stood_still_in_the_pause_before_it() -> None:
    """By then its window may have closed, or another worker have taken over."""
    adapter = Adapter()

    async def stands_still(seconds: float) -> None:
        await asyncio.sleep(30 if len(adapter.sent) == 2 else seconds)

    async def story() -> Outcome:
        sender = PartSender(jitter=PartJitter(), random=Random(1), sleep=stands_still)
        return await sender.send(message(parts=THREE), "any", profile(), adapter, limit=LIMIT)

    outcome = virtual_time.run(story(), seed=1, start=START)
    assert isinstance(outcome, Postponed)
    assert (outcome.parts_sent, len(adapter.sent)) == (2, 2)


@pytest.mark.parametrize(("shortest", "longest"), [(-1, 0), (2, 1)])
def test_a_jitter_that_is_no_range_is_refused(shortest: int, longest: int) -> None:
    with pytest.raises(ValueError, match="no range"):
        PartJitter(shortest=timedelta(seconds=shortest), longest=timedelta(seconds=longest))


# --- what comes back in receipts


def test_a_correlation_is_read_as_it_was_written() -> None:
    it = Correlation(request_id="01HX-_zq", part=2, parts=3)
    assert (str(it), it.key, it.is_last) == ("01HX-_zq:2:3", "01HX-_zq:2", True)
    assert Correlation.parse(str(it)) == it
    later = replace(it, series=1)
    assert (str(later), later.key) == ("01HX-_zq:2:3:1", "01HX-_zq:2:1")
    assert Correlation.parse(str(later)) == later


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "request-1:b:c",
        "request-1:1:1",
        "request-1:0:0",
        "request-1:1",
        "request-1:0:1:x",
        "request-1:0:1:",
        "request-1:0:1:2:3",
        "request 1:0:1",
        "request-1:٠:1",
        "request-1:0:1\n",
        "short:0:1",
    ],
)
def test_a_mark_that_is_not_ours_is_no_correlation(foreign: str) -> None:
    assert Correlation.parse(foreign) is None
