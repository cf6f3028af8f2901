"""WebChannel sessions in virtual time: how long they live, what they keep, and what a wrong client gets.

What a browser sees of them, beside Google's emulator: tests/conformance/test_webchannel.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from firestore_emulator.documents.protos import ListenRequest, ListenResponse, Proto
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.service import BidiStream, Call, Service
from firestore_emulator.virtual_time import run
from firestore_emulator.wire import webchannel
from firestore_emulator.wire.webchannel import OutOfTurn, Session, WebChannels
from tests.conformance.channel import Numbered, is_noop, unframed

DATABASE = "projects/p/databases/(default)"


class Echo:
    """A service with one stream: each request gets as many answers as its target's number says."""

    def __init__(self) -> None:
        self.answered = 0
        self.has_ended = False
        self.metadata: dict[str, str] = {}

    def channels(self) -> WebChannels:
        return WebChannels(Service("echo", {"Listen": BidiStream(ListenRequest, self._listen)}))

    async def _listen(self, requests: AsyncIterator[Proto], call: Call) -> AsyncIterator[Proto]:
        self.metadata = dict(call.metadata)
        try:
            async for request in requests:
                for _ in range(request.remove_target):
                    self.answered += 1
                    yield ListenResponse(target_change={"resume_token": bytes(len(request.database))})
        finally:
            self.has_ended = True


def asking(answers: int, size: int = 0) -> str:
    return json.dumps({"removeTarget": answers, "database": "x" * size})


async def heard(session: Session, after: int, count: int) -> list[Numbered]:
    """A number of answers of a back channel that is then broken."""
    said: list[Numbered] = []
    async with aclosing(session.told(after, once=False)) as chunks:
        async for chunk in chunks:
            said += [(number, words) for number, words in unframed(chunk) if not is_noop(words)]
            if len(said) >= count:
                return said
    return said


def virtually(main: Coroutine[Any, Any, None]) -> None:
    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_session_without_a_back_channel_ends_after_a_minute_and_takes_its_stream_with_it() -> None:
    async def body() -> None:
        echo = Echo()
        channels = echo.channels()
        session = channels.open("Listen", {})
        session.take(0, [asking(1)])
        await asyncio.sleep(webchannel.LONELY_SECONDS - 1)
        assert channels.find(session.id) is session
        await heard(session, 0, 1)
        await asyncio.sleep(webchannel.LONELY_SECONDS - 1)
        assert channels.find(session.id) is session, "counted from the last back channel"
        await asyncio.sleep(2)
        assert channels.find(session.id) is None
        assert echo.has_ended

    virtually(body())


def test_a_silent_back_channel_is_kept_alive_and_ends_after_its_turn() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        session = Echo().channels().open("Listen", {})
        started = loop.time()
        said = [(loop.time() - started, unframed(chunk)) async for chunk in session.told(0, once=False)]
        assert all(words == ["noop"] for _, answers in said for _, words in answers)
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(said)]
        assert said[0][0] == 0, "at once, so that the client sees that pieces come through"
        assert max(gaps) < 30, "clients give up after that"
        assert webchannel.TURN_SECONDS <= loop.time() - started <= webchannel.TURN_SECONDS + 30

    virtually(body())


def test_a_back_channel_ends_after_a_megabyte_so_that_the_client_says_how_far_it_is() -> None:
    async def body() -> None:
        session = Echo().channels().open("Listen", {})
        session.take(0, [asking(1, 500_000)])
        said = []
        async for chunk in session.told(0, once=False):
            said.append(unframed(chunk))
            session.take(len(said), [asking(1, 500_000)])
        assert 2 <= len(said) <= 4

    virtually(body())


def test_a_stream_waits_for_a_client_that_does_not_read() -> None:
    async def body() -> None:
        echo = Echo()
        session = echo.channels().open("Listen", {})
        session.take(0, [asking(100, 1_000_000)])
        await asyncio.sleep(10)
        assert echo.answered < 20
        assert session.kept_bytes < 2 * webchannel.MOST_KEPT_BYTES
        read, answers = 0, 0
        while answers < 100:
            said = await heard(session, read, 1)
            read, answers = said[-1][0], answers + len(said)
        assert answers == echo.answered == 100

    virtually(body())


def test_what_is_acknowledged_is_kept_no_longer() -> None:
    async def body() -> None:
        session = Echo().channels().open("Listen", {})
        session.take(0, [asking(10, 100)])
        said = await heard(session, 0, 10)
        assert session.kept_bytes > 1000
        session.acknowledge(said[-1][0])
        assert session.kept_bytes == 0

    virtually(body())


def test_a_second_back_channel_takes_the_place_of_the_first() -> None:
    async def body() -> None:
        session = Echo().channels().open("Listen", {})
        ended: list[str] = []

        async def listen(name: str) -> None:
            async for _ in session.told(0, once=False):
                pass
            ended.append(name)

        first = asyncio.create_task(listen("first"))
        await asyncio.sleep(1)
        second = asyncio.create_task(listen("second"))
        await asyncio.sleep(1)
        assert ended == ["first"]
        assert session.is_heard
        session.end()
        await asyncio.gather(first, second)

    virtually(body())


def test_a_message_that_comes_before_its_turn_is_refused_and_those_that_come_again_are_left() -> None:
    async def body() -> None:
        echo = Echo()
        session = echo.channels().open("Listen", {})
        session.take(0, [asking(1), asking(1)])
        with pytest.raises(OutOfTurn):
            session.take(3, [asking(1)])
        session.take(1, [asking(1), asking(1)])
        await asyncio.sleep(1)
        assert echo.answered == 3

    virtually(body())


@pytest.mark.parametrize(
    "message", ["", "null", "[]", "nonsense", '{"removeTarget": "x"}', '{"addTarget": 3}', "[" * 9999]
)
def test_a_message_that_is_none_ends_the_session_with_a_reason(message: str) -> None:
    async def body() -> None:
        channels = Echo().channels()
        session = channels.open("Listen", {})
        session.take(0, [message])
        [(_, [told])] = await heard(session, 0, 1)
        assert told["error"]["status"] == "INVALID_ARGUMENT"

    virtually(body())


def test_what_a_newer_client_says_more_is_passed_over() -> None:
    async def body() -> None:
        echo = Echo()
        echo.channels().open("Listen", {}).take(0, ['{"removeTarget": 1, "sinceNextYear": {"a": [1]}}'])
        await asyncio.sleep(1)
        assert echo.answered == 1

    virtually(body())


@pytest.mark.parametrize("method", ["Listen", "Write"])
def test_a_database_that_is_none_is_reported_with_its_status(method: str) -> None:
    async def body() -> None:
        emulator = FirestoreEmulator()
        session = emulator._channels.open(method, {})
        session.take(0, ['{"database": "nonsense", "removeTarget": 1}'])
        [(_, [told])] = await heard(session, 0, 1)
        assert told["error"]["status"] == "INVALID_ARGUMENT"
        await emulator.stop()

    virtually(body())


def test_an_emulator_that_stops_ends_the_streams_of_its_sessions() -> None:
    async def body() -> None:
        emulator = FirestoreEmulator()
        session = emulator._channels.open("Listen", {})
        documents = {"documents": [f"{DATABASE}/documents/c/1"]}
        session.take(0, [json.dumps({"database": DATABASE, "addTarget": {"documents": documents, "targetId": 2}})])
        await heard(session, 0, 1)
        before = len(emulator.engine.after_commit)
        await emulator.stop()
        assert len(emulator._channels) == 0
        assert len(emulator.engine.after_commit) == before - 1

    virtually(body())
