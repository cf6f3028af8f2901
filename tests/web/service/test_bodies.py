"""Bodies over real sockets: too large, too slow, too many at once, chunked without end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from firestore_outbox.web.bodies import Bodies, NotRead
from tests.patience import PATIENCE_SECONDS
from tests.web.service.sockets import Connection, connected

MOST = 100_000
IN_ALL = 150_000


@dataclass
class Reader:
    bodies: Bodies
    address: tuple[str, int] = ("", 0)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def endpoint(self, request: Request) -> Response:
        async with self.bodies.read(request, MOST) as body:
            if isinstance(body, NotRead):
                return PlainTextResponse(body.reason, body.status, headers={"Connection": "close"})
            if request.url.path == "/hold":
                await self.let_go.wait()
            return PlainTextResponse(str(len(body)))

    def connect(self) -> Connection:
        return Connection(*self.address)


@asynccontextmanager
async def reading(seconds: float = PATIENCE_SECONDS) -> AsyncIterator[Reader]:
    reader = Reader(Bodies(most_bytes=IN_ALL, seconds=seconds))
    app = Starlette(routes=[Route("/{path:path}", reader.endpoint, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
    async with connected(server) as address:
        reader.address = address
        yield reader
        reader.let_go.set()


async def test_a_body_is_read_whole() -> None:
    async with reading() as reader, reader.connect() as caller:
        await caller.start("/", length=MOST)
        await caller.send(b"x" * MOST)
        assert await caller.answer() == (200, str(MOST))
        assert reader.bodies.held_bytes == 0


async def test_a_content_length_above_the_limit_is_refused_before_a_byte_is_read() -> None:
    async with reading() as reader, reader.connect() as caller:
        await caller.start("/", length=MOST + 1)
        assert (await caller.answer())[0] == 413


async def test_a_chunked_body_without_end_is_refused_at_the_limit() -> None:
    async with reading() as reader, reader.connect() as caller:
        await caller.start("/")
        assert await caller.send_chunks(b"x" * 10_000, most=1_000) < 1_000
        assert (await caller.answer())[0] == 413
        assert reader.bodies.held_bytes == 0


async def test_a_body_that_stands_still_is_given_up() -> None:
    async with reading(seconds=0.2) as reader, reader.connect() as caller:
        await caller.start("/", length=1_000)
        await caller.send(b"x")
        assert (await caller.answer())[0] == 408
        assert reader.bodies.held_bytes == 0


async def test_a_caller_who_goes_away_leaves_nothing_behind() -> None:
    async with reading() as reader:
        async with reader.connect() as caller:
            await caller.start("/", length=MOST)
            await caller.send(b"x" * 50_000)
            await until(reader, 50_000)
        await until(reader, 0)


async def test_all_bodies_together_are_bounded_until_their_callers_are_answered() -> None:
    async with reading() as reader, reader.connect() as first, reader.connect() as second:
        await first.start("/hold", length=MOST)
        await first.send(b"x" * MOST)
        await until(reader, MOST)
        await second.start("/", length=MOST)
        await second.send(b"x" * MOST)
        assert (await second.answer())[0] == 503
        reader.let_go.set()
        assert await first.answer() == (200, str(MOST))
        async with reader.connect() as third:
            await third.start("/", length=MOST)
            await third.send(b"x" * MOST)
            assert await third.answer() == (200, str(MOST))


async def until(reader: Reader, held_bytes: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while reader.bodies.held_bytes != held_bytes:  # noqa: ASYNC110 - the other side of a socket
            await asyncio.sleep(0.01)
