"""A browser's side of WebChannel, as plain requests: what the web SDK sends, and what it makes of the answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx

UNITS = "utf-16-le"
"""A frame's length is counted as JavaScript counts."""
Numbered = tuple[int, Any]
"""An answer's number, and what it says."""


class Channel:
    """One session of a stream, on an emulator at that address."""

    def __init__(self, http: httpx.AsyncClient, address: str | None, method: str, database: str) -> None:
        self._http = http
        self._url = f"http://{address}/google.firestore.v1.Firestore/{method}/channel"
        self._common = {"VER": "8", "database": database, "zx": "x", "t": "1"}
        self._sent = 0
        self._request = 4711
        self.session = ""
        self.read = 0
        """The number of the last answer that was read."""

    async def open(self, *messages: Any) -> None:
        headers = "X-Goog-Api-Client:gl-js/ fire/12\r\nAuthorization:Bearer owner\r\n"
        answer = await self._http.post(
            self._url,
            params={**self._common, "RID": str(self._request), "CVER": "22", "$httpHeaders": headers},
            content=form(0, messages),
        )
        assert answer.status_code == 200, answer.text
        [(number, (word, self.session, prefix, version, _, keep_alive))] = unframed(answer.text)
        assert (number, word, prefix, version, keep_alive) == (0, "c", "", 8, 30_000)
        self._sent = len(messages)

    async def send(self, *messages: Any, again: bool = False) -> tuple[bool, int]:
        """Whether a back channel is open, and the number of the last answer that went out. `again`: as if the answer
        to the last request had been lost."""
        first = self._sent - len(messages) if again else self._sent
        self._request += not again
        answer = await self.post(first, messages, RID=str(self._request))
        self._sent = first + len(messages)
        assert answer.status_code == 200, answer.text
        length, _, text = answer.text.partition("\n")
        assert int(length) == len(text)
        is_heard, last, _ = json.loads(text)
        return bool(is_heard), last

    async def post(self, first: int, messages: Sequence[Any], **parameters: str) -> httpx.Response:
        query = {**self._common, "SID": self.session, "AID": str(self.read), "RID": "0", **parameters}
        return await self._http.post(self._url, params=query, content=form(first, messages))

    async def get(self, **parameters: str) -> httpx.Response:
        query = {**self._common, "SID": self.session, "RID": "rpc", "CI": "0", "TYPE": "xmlhttp", **parameters}
        return await self._http.get(self._url, params=query)

    async def poll(self) -> list[Numbered]:
        """A back channel that ends with its first answer."""
        answer = await self.get(AID=str(self.read), CI="1")
        assert answer.status_code == 200, answer.text
        return self._noted(unframed(answer.text))

    @asynccontextmanager
    async def listening(self, after: int | None = None) -> AsyncIterator[AsyncIterator[Numbered]]:
        """A back channel that stays open, and says what comes after that number."""
        query = {**self._common, "SID": self.session, "RID": "rpc", "CI": "0", "TYPE": "xmlhttp"}
        query["AID"] = str(self.read if after is None else after)
        async with self._http.stream("GET", self._url, params=query) as answer:
            assert answer.status_code == 200
            yield self._answers(answer)

    async def _answers(self, answer: httpx.Response) -> AsyncIterator[Numbered]:
        units = b""
        async for piece in answer.aiter_text():
            units += piece.encode(UNITS)
            while (whole := _first_whole(units)) is not None:
                units = units[len(whole) :]
                for numbered in self._noted(unframed(whole.decode(UNITS))):
                    yield numbered

    def _noted(self, answers: list[Numbered]) -> list[Numbered]:
        self.read = max([self.read, *(number for number, _ in answers)])
        return answers


def form(first: int, messages: Sequence[Any]) -> str:
    texts = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    fields = {f"req{index}___data__": text for index, text in enumerate(texts)}
    return urlencode({"count": len(texts), "ofs": first, **fields})


def _first_whole(units: bytes) -> bytes | None:
    """The first frame with its length, if all of it has come."""
    length, newline, rest = units.partition("\n".encode(UNITS))
    size = 2 * int(length.decode(UNITS)) if newline else 0
    return length + newline + rest[:size] if newline and len(rest) >= size else None


def unframed(text: str) -> list[Numbered]:
    length, _, content = text.partition("\n")
    assert 2 * int(length) == len(content.encode(UNITS))
    return [(number, said) for number, said in json.loads(content)]


def is_noop(said: Any) -> bool:
    return bool(said == ["noop"])
