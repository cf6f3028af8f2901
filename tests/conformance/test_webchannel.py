"""A browser's streams: WebChannel on our emulator and on Google's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest_asyncio

from tests.conformance.backends import Backend
from tests.conformance.channel import Channel, Numbered, is_noop
from tests.conformance.wire import query, set_
from tests.patience import PATIENCE_SECONDS

NOT_KEPT = httpx.Limits(max_keepalive_connections=0)
"""Google's emulator closes a connection after some of its answers, and does not say so in them."""
Open = Callable[[str], Channel]


@pytest_asyncio.fixture(loop_scope="session")
async def channel(socket_backend: Backend) -> AsyncIterator[Open]:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS, limits=NOT_KEPT) as http:
        yield lambda method: Channel(http, socket_backend.address, method, socket_backend.database)


def watch(backend: Backend, path: str, target: int = 2) -> dict[str, Any]:
    add = {"documents": {"documents": [backend.name(path)]}, "targetId": target}
    return {"database": backend.database, "addTarget": add}


def writing(backend: Backend, path: str, number: int, **more: Any) -> dict[str, Any]:
    fields = {"n": {"integerValue": str(number)}}
    return {"streamToken": "MA==", "writes": [{"update": {"name": backend.name(path), "fields": fields}, **more}]}


async def until(answers: AsyncIterator[Numbered], good: Callable[[Any], bool]) -> list[Numbered]:
    """What is said up to there, without what only keeps the connection alive."""
    said: list[Numbered] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for number, words in answers:
            if not is_noop(words):
                said.append((number, words))
                if good(words):
                    return said
    raise AssertionError(f"it ended with {said}")


def is_current(words: Any) -> bool:
    return bool(words[0].get("targetChange", {}).get("targetChangeType") == "CURRENT")


def is_change(words: Any) -> bool:
    return "documentChange" in words[0]


async def test_a_listener_hears_of_each_change_while_its_back_channel_is_open(
    socket_backend: Backend, channel: Open
) -> None:
    listener = channel("Listen")
    await listener.open(watch(socket_backend, "c/é"))
    async with listener.listening() as answers:
        await until(answers, is_current)
        for number in range(3):
            await socket_backend.seed({"c/é": {"n": number, "text": "✓ 😀", "none": None, "map": {}}})
            [*_, (_, [changed])] = await until(answers, is_change)
            document = changed["documentChange"]["document"]
            assert document["name"] == socket_backend.name("c/é")
            assert document["fields"] == {
                "n": {"integerValue": str(number)},
                "text": {"stringValue": "✓ 😀"},
                "none": {"nullValue": None},
                "map": {"mapValue": {}},
            }
            assert changed["documentChange"]["targetIds"] == [2]


async def test_messages_go_on_the_forward_channel_and_their_answers_come_on_the_back_channel(
    socket_backend: Backend, channel: Open
) -> None:
    await socket_backend.seed({"c/1": {}, "c/2": {}})
    listener = channel("Listen")
    await listener.open(watch(socket_backend, "c/1", 2))
    async with listener.listening() as answers:
        await until(answers, is_current)
        is_heard, _ = await listener.send(watch(socket_backend, "c/2", 4))
        assert is_heard
        said = await until(answers, is_current)
        assert [words[0]["documentChange"]["targetIds"] for _, words in said if is_change(words)] == [[4]]


async def test_what_was_not_acknowledged_is_said_again_on_the_next_back_channel(
    socket_backend: Backend, channel: Open
) -> None:
    listener = channel("Listen")
    await listener.open(watch(socket_backend, "c/1"))
    async with listener.listening() as answers:
        first = await until(answers, is_current)
    await socket_backend.seed({"c/1": {"n": 1}})  # while none is open
    async with listener.listening(after=first[0][0]) as answers:
        again = await until(answers, is_change)
    assert again[: len(first) - 1] == first[1:]
    numbers = [number for number, _ in again]
    assert numbers == sorted(set(numbers))


async def test_a_back_channel_for_a_client_that_gets_no_pieces_ends_with_its_first_answer(
    socket_backend: Backend, channel: Open
) -> None:
    writer = channel("Write")
    await writer.open({"database": socket_backend.database})
    [(_, [opened])] = await writer.poll()
    assert opened["streamToken"]
    await writer.send(writing(socket_backend, "c/1", 1))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (said := [words for _, words in await writer.poll() if not is_noop(words)]):
            pass
    assert len(said[0][0]["writeResults"]) == 1


async def test_a_message_that_is_sent_again_is_taken_once(socket_backend: Backend, channel: Open) -> None:
    writer = channel("Write")
    await writer.open({"database": socket_backend.database})
    async with writer.listening() as answers:
        await until(answers, lambda words: "streamId" in words[0])
        increment = {"fieldPath": "n", "increment": {"integerValue": "1"}}
        once = {"update": {"name": socket_backend.name("c/1")}, "updateTransforms": [increment]}
        counting = {"streamToken": "MA==", "writes": [once]}
        await writer.send(counting)
        await writer.send(counting, again=True)
        await writer.send(writing(socket_backend, "c/last", 1))
        await until(answers, lambda words: "writeResults" in words[0])
        await until(answers, lambda words: "writeResults" in words[0])
    assert await socket_backend.fields("c/1") == {"n": 1}
    assert await socket_backend.paths(query("c")) == ["c/1", "c/last"]


async def test_a_write_that_is_refused_is_reported_with_its_status(socket_backend: Backend, channel: Open) -> None:
    writer = channel("Write")
    await writer.open({"database": socket_backend.database})
    async with writer.listening() as answers:
        await until(answers, lambda words: "streamId" in words[0])
        await writer.send(writing(socket_backend, "c/none", 1, currentDocument={"exists": True}))
        [(_, [refused])] = await until(answers, lambda words: "error" in words[0])
    assert refused["error"]["status"] == "NOT_FOUND"
    assert await socket_backend.paths(query("c")) == []


async def test_a_commit_over_the_channel_verifies_what_was_read(socket_backend: Backend, channel: Open) -> None:
    await socket_backend.seed({"c/read": {"x": 1}})
    writer = channel("Write")
    await writer.open({"database": socket_backend.database})
    async with writer.listening() as answers:
        await until(answers, lambda words: "streamId" in words[0])
        for path, is_there in (("c/read", True), ("c/none", False), ("c/none", True)):
            message = writing(socket_backend, f"c/{is_there}", 1)
            read = {"verify": socket_backend.name(path), "currentDocument": {"exists": is_there}}
            await writer.send({**message, "writes": [read, *message["writes"]]})
            [*_, (_, [said])] = await until(answers, lambda words: words[0].keys() & {"writeResults", "error"} != set())
            assert ("error" in said) == (path == "c/none" and is_there)
    assert said["error"]["status"] == "NOT_FOUND"
    assert await socket_backend.paths(query("c")) == ["c/False", "c/True", "c/read"]


async def test_an_unknown_session_is_refused(socket_backend: Backend, channel: Open) -> None:
    stranger = channel("Listen")
    stranger.session = "unknown"
    assert (await stranger.get(AID="0")).status_code == 400
    assert (await stranger.post(0, [watch(socket_backend, "c/1")])).status_code == 400


async def test_a_client_that_says_that_it_is_gone_has_no_session_any_more(
    socket_backend: Backend, channel: Open
) -> None:
    listener = channel("Listen")
    await listener.open(watch(socket_backend, "c/1"))
    assert (await listener.post(1, [], TYPE="terminate")).status_code == 200
    assert (await listener.get(AID="0")).status_code == 400


async def test_commits_beside_the_stream_are_seen_by_it(socket_backend: Backend, channel: Open) -> None:
    writer, listener = channel("Write"), channel("Listen")
    await writer.open({"database": socket_backend.database})
    await listener.open(watch(socket_backend, "c/1"))
    async with listener.listening() as heard, writer.listening() as answers:
        await until(heard, is_current)
        await until(answers, lambda words: "streamId" in words[0])
        await writer.send(writing(socket_backend, "c/1", 7))
        [*_, (_, [changed])] = await until(heard, is_change)
        assert changed["documentChange"]["document"]["fields"] == {"n": {"integerValue": "7"}}
    await socket_backend.commit(set_(socket_backend.name("c/1"), {"n": 8}))
    async with listener.listening() as heard:
        await until(heard, is_change)
