"""WebChannel sessions: a stream of the service (Listen, Write) for a client that can make only plain HTTP requests.

A browser's SDK opens a session with its first messages, sends more of them in further requests (the forward channel),
and hears the answers on a request that stays open (the back channel). Both ways everything is numbered. Answers are
kept until the client says that it has them, so nothing is lost when a back channel breaks; a message that is sent again
is taken once. A back channel ends by itself now and then, since only with its next request does the client say how far
it has read. `webchannel_http.py` has the requests.

A session ends when the client says so, as it does when its stream has ended, or when no back channel has been open for
a while.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from firestore_emulator.documents.protos import Proto
from firestore_emulator.rpc.errors import RpcError, invalid_argument
from firestore_emulator.rpc.service import BidiStream, Call, Service, refusal_of
from firestore_emulator.wire.json_requests import message_of
from firestore_emulator.wire.rest_messages import as_json, json_of, refused

NOOP_SECONDS = 20.0
"""Clients are told 30, and give a back channel up that was silent for longer."""
TURN_SECONDS, TURN_BYTES = 60.0, 1_000_000
"""A back channel ends after so long, or so much."""
LONELY_SECONDS = 60.0
"""A session without a back channel ends after that."""
MOST_KEPT_BYTES = 16_000_000
"""Beyond it the stream waits for the client."""
NOOP = '["noop"]'


class OutOfTurn(Exception):
    """A message came before the one in front of it."""


class Session:
    def __init__(self, method: BidiStream, call: Call, on_end: Callable[[], None]) -> None:
        self.id = secrets.token_urlsafe(16)
        self._kind = method.request
        self._on_end = on_end
        self._received = 0
        self._asked: asyncio.Queue[Proto | Exception] = asyncio.Queue()
        self._kept: deque[tuple[int, str]] = deque()
        self._kept_bytes = 0
        self._numbers = 0
        self.last_told = 0
        """The number of the last answer that went out on a back channel."""
        self._listener: object | None = None
        """The back channel that is open."""
        self._ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._leaving = self._loop.call_later(LONELY_SECONDS, self.end)
        self.stream = asyncio.create_task(self._carry(method, call))

    @property
    def is_heard(self) -> bool:
        """Whether a back channel is open."""
        return self._listener is not None

    @property
    def kept_bytes(self) -> int:
        """What the client has not acknowledged yet."""
        return self._kept_bytes

    # --- the forward channel

    def take(self, first: int, messages: Sequence[str]) -> None:
        """The client's messages; the first has that number."""
        if first > self._received:
            raise OutOfTurn(f"message {first} came, and {self._received} is next")
        for message in messages[self._received - first :]:
            self._received += 1
            try:
                self._asked.put_nowait(_parsed(message, self._kind))
            except RpcError as error:
                self._asked.put_nowait(error)

    async def _requests(self) -> AsyncIterator[Proto]:
        while True:
            request = await self._asked.get()
            if isinstance(request, Exception):
                raise request
            yield request

    async def _carry(self, method: BidiStream, call: Call) -> None:
        try:
            async for answer in method.handler(self._requests(), call):
                self._tell(json.dumps([as_json(answer)], separators=(",", ":")))
                while self._kept_bytes > MOST_KEPT_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:  # noqa: BLE001 - the border: whatever a handler raises becomes a status
            _, content = refused(refusal_of(error, self._kind.DESCRIPTOR.name))
            self._tell(json.dumps([content]))
        self._ended = True
        self._news.set()

    # --- the back channel

    def _tell(self, array: str) -> None:
        self._numbers += 1
        self._kept.append((self._numbers, array))
        self._kept_bytes += len(array)
        self._news.set()

    def acknowledge(self, number: int) -> None:
        """The client has the answers up to that number."""
        while self._kept and self._kept[0][0] <= number:
            self._kept_bytes -= len(self._kept.popleft()[1])
        self._room.set()

    async def told(self, after: int, *, once: bool) -> AsyncGenerator[str, None]:
        """What a back channel says: all that comes behind that number. `once`: it ends with the first of it, because
        something between us and the client holds back what comes in pieces."""
        self.acknowledge(after)
        self._listener = listener = object()
        self._news.set()  # the one before this ends
        self._leaving.cancel()
        if not once and not self._kept:
            self._tell(NOOP)  # so that the client sees at once that pieces come through
        until, written = self._loop.time() + TURN_SECONDS, 0
        try:
            while self._listener is listener:
                if arrays := [(number, array) for number, array in self._kept if number > after]:
                    after = self.last_told = arrays[-1][0]
                    chunk = framed("[" + ",".join(f"[{number},{array}]" for number, array in arrays) + "]")
                    yield chunk
                    written += len(chunk)
                    if once or written > TURN_BYTES or self._loop.time() > until:
                        return
                elif self._ended:
                    return
                else:
                    await self._wait()
        finally:
            if self._listener is listener:
                self._listener = None
                # Also when the stream has ended: the client still takes leave, and must not be told that it is unknown.
                self._leaving = self._loop.call_later(LONELY_SECONDS, self.end)

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(NOOP_SECONDS):
                await self._news.wait()
        except TimeoutError:
            self._tell(NOOP)

    def end(self) -> None:
        self._ended = True
        self._leaving.cancel()
        self.stream.cancel()
        self._news.set()
        self._on_end()


class WebChannels:
    """The sessions of one service."""

    def __init__(self, service: Service) -> None:
        self._methods = service.methods
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, name: str, metadata: Mapping[str, str]) -> Session:
        """A session for the method of that name, which is a stream both ways."""
        method = self._methods[name]
        assert isinstance(method, BidiStream), "only streams both ways have channels"
        session = Session(method, Call(metadata), lambda: self._forget(session))
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str) -> Session | None:
        return self._sessions.get(session_id)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)

    async def close(self) -> None:
        """Ends them all, and their streams."""
        sessions = list(self._sessions.values())
        for session in sessions:
            session.end()
        await asyncio.gather(*(session.stream for session in sessions), return_exceptions=True)


def framed(text: str) -> str:
    """With its length in front. Everything here is ASCII, so that a length is the same however it is counted."""
    return f"{len(text)}\n{text}"


def _parsed(message: str, kind: Any) -> Proto:
    content = json_of(message.encode())
    if not isinstance(content, dict):
        raise invalid_argument("A message must be a JSON object.")
    # A newer SDK may send fields that this version does not know; gRPC passes over them too.
    return message_of(content, kind, ignore_unknown_fields=True)
