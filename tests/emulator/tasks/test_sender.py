"""The HTTP client against servers that answer in every way a server may, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import h11
import pytest

from firestore_emulator import outgoing
from firestore_emulator.outgoing import Answered, HttpCall, HttpSender


class Script:
    """A server that plays one answer a request, and drops the connection after an answer of None."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                if b"Connection: close" in answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def playing(*answers: bytes | None) -> AsyncIterator[tuple[Script, HttpSender]]:
    script, send = Script(*answers), HttpSender()
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script, send
    finally:
        await send.close()
        server.close()


def get(url: str, method: str = "GET") -> HttpCall:
    return HttpCall(method=method, url=url, headers={}, body=b"", deadline=timedelta(seconds=15))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    ("answer", "method", "status"),
    [
        (OK, "GET", 200),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "GET", 204),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "GET", 200),
        (b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nuntil the end", "GET", 503),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, "GET", 200),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", "HEAD", 200),
        (b"HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\n", "GET", 404),
        (b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", "GET", 302),
    ],
    ids=["length", "no content", "chunked", "until close", "early hints", "HEAD", "HTTP/1.0", "redirect"],
)
async def test_every_kind_of_answer_is_read(answer: bytes, method: str, status: int) -> None:
    async with playing(answer) as (script, send):
        assert (await send(get(script.url, method))).status == status
        assert len(script.requests) == 1


async def test_a_connection_is_used_again_and_replaced_when_the_server_drops_it() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with playing(OK, OK, OK, closing, OK) as (script, send):
        for _ in range(5):
            assert await send(get(script.url)) == Answered(200)
        assert script.connections == 2


async def test_a_connection_that_stood_idle_for_too_long_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "IDLE_SECONDS", 0.0)
    async with playing(OK, OK) as (script, send):
        for _ in range(2):
            assert await send(get(script.url)) == Answered(200)
        assert script.connections == 2


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 200 OK\r\nContent-Le", b"nonsense\r\n\r\n"])
async def test_half_an_answer_is_no_answer(answer: bytes | None) -> None:
    async with playing(answer) as (script, send):
        with pytest.raises((ConnectionError, h11.RemoteProtocolError)):
            await send(get(script.url))


async def test_the_wish_of_retry_after_is_read() -> None:
    for value, seconds in ((b"30", 30), (b"Fri, 31 Dec 1999 23:59:59 GMT", 0), (b"-1", 0)):
        answer = b"HTTP/1.1 429 Slow\r\nRetry-After: " + value + b"\r\nContent-Length: 0\r\n\r\n"
        async with playing(answer) as (script, send):
            assert await send(get(script.url)) == Answered(429, timedelta(seconds=seconds))


async def test_a_url_is_made_safe_for_the_wire() -> None:
    async with playing(OK) as (script, send):
        await send(get(f"{script.url}/a b/ä?q=x y&z=%20#part"))
        assert script.requests[0].startswith(b"GET /a%20b/%C3%A4?q=x%20y&z=%20 HTTP/1.1\r\n")
