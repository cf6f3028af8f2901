"""`python -m bench.pools`: our pool of connections beside httpx's own, in CPU time for a request.

A server in a process of its own answers after 50 ms, so that the connections are in use together. Compared is the
client's CPU time, which depends little on what else the machine does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import httpx

from firestore_outbox.providers.pool import ConnectionPool

REQUESTS = 2_000
IN_USE = (3, 50)
ANSWER_SECONDS = 0.05
WARM_UP = 2
"""Rounds before the measurement: every connection is open then."""

Transport = Callable[[int], httpx.AsyncBaseTransport]

POOLS: dict[str, Transport] = {
    "ours": lambda most: ConnectionPool(max_connections=most, keepalive_seconds=60),
    "httpx": lambda most: httpx.AsyncHTTPTransport(
        limits=httpx.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=60), trust_env=False
    ),
}


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(ANSWER_SECONDS)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _serve(parent: Connection) -> None:
    async def main() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        parent.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def microseconds(make: Transport, url: str, in_use: int, requests: int) -> float:
    """CPU time of one request, with that many under way."""
    async with httpx.AsyncClient(transport=make(in_use), timeout=30) as client:

        async def some(count: int) -> None:
            for _ in range(count):
                (await client.get(url)).raise_for_status()

        await asyncio.gather(*(some(WARM_UP) for _ in range(in_use)))
        before = time.process_time()
        await asyncio.gather(*(some(requests // in_use) for _ in range(in_use)))
        return (time.process_time() - before) / (requests // in_use * in_use) * 1e6


def main(requests: int = REQUESTS) -> None:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        print("| connections in use | ours, µs of CPU for a request | httpx's own |\n|---|---|---|")
        for in_use in IN_USE:
            taken = [asyncio.run(microseconds(make, url, in_use, requests)) for make in POOLS.values()]
            print(f"| {in_use} | {taken[0]:,.0f} | {taken[1]:,.0f} |")
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
