"""A link passes everything on, until it is cut in one of three ways; and again when it is restored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.system.chaos.link import HOST, Link
from tests.system.chaos.plan import Manner


class Upstream:
    """Answers each line with itself, and notes what arrived."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                self.lines.put_nowait(line)
                writer.write(line)
        writer.close()

    async def arrived(self) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.lines.get()


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Link, Upstream]]:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.talk, HOST, 0)
    async with Link("a>b") as link:
        link.behind = server.sockets[0].getsockname()[1]
        yield link, upstream
    server.close()


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await reader.readline()


async def test_a_whole_link_carries_both_ways() -> None:
    async with linked() as (link, _):
        reader, writer = await asyncio.open_connection(HOST, link.port)
        writer.write(b"hello\n")
        assert await answer(reader) == b"hello\n"
        writer.close()


async def test_a_refusing_link_ends_what_is_open_and_lets_nothing_in() -> None:
    async with linked() as (link, _):
        reader, writer = await asyncio.open_connection(HOST, link.port)
        writer.write(b"hello\n")
        await answer(reader)
        await link.cut(Manner.REFUSE)
        with suppress(ConnectionError):
            assert await answer(reader) == b""
        again, other = await asyncio.open_connection(HOST, link.port)
        with suppress(ConnectionError):
            assert await answer(again) == b""
        await link.restore()
        later, third = await asyncio.open_connection(HOST, link.port)
        third.write(b"again\n")
        assert await answer(later) == b"again\n"
        for one in (writer, other, third):
            one.close()


async def test_what_was_under_way_on_a_stalled_link_arrives_late_also_from_a_sender_that_has_hung_up() -> None:
    async with linked() as (link, upstream):
        reader, writer = await asyncio.open_connection(HOST, link.port)
        writer.write(b"first\n")
        await answer(reader)
        await upstream.arrived()
        await link.cut(Manner.STALL)
        writer.write(b"late\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert upstream.lines.empty()
        await link.restore()
        assert await upstream.arrived() == b"late\n"


async def test_on_a_mute_link_the_question_arrives_and_the_answer_never_does() -> None:
    async with linked() as (link, upstream):
        reader, writer = await asyncio.open_connection(HOST, link.port)
        writer.write(b"first\n")
        await answer(reader)
        await upstream.arrived()
        await link.cut(Manner.MUTE)
        writer.write(b"asked\n")
        assert await upstream.arrived() == b"asked\n"
        await link.restore()
        with suppress(ConnectionError):
            assert await answer(reader) == b""
        writer.close()


@pytest.mark.parametrize("manner", list(Manner))
async def test_a_link_to_something_that_is_down_refuses_also_after_a_cut(manner: Manner) -> None:
    async with linked() as (link, _):
        link.behind = None
        await link.cut(manner)
        await link.restore()
        reader, writer = await asyncio.open_connection(HOST, link.port)
        with suppress(ConnectionError):
            assert await answer(reader) == b""
        writer.close()
