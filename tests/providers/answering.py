"""A server that answers every call in the same way, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Heard:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answering:
    """`async with Answering(429, {…}, {"Retry-After": "7"}) as it`; a body of None is an empty one."""

    status: int
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[Heard] = field(default_factory=list)
    url: str = ""

    async def __aenter__(self) -> Answering:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.calls.append(Heard(method, target, headers, body))
        content = b"" if self.body is None else json.dumps(self.body).encode()
        given = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        lines = f"HTTP/1.1 {self.status} -\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{given}\r\n"
        writer.write(lines.encode() + content)
        await writer.drain()
        writer.close()
