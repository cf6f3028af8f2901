"""The server's HTTP/2, frame by frame: what the real client never sends, and what it relies on without asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from grpc import aio
from hpack import Decoder, Encoder

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc import frames
from firestore_emulator.rpc.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PADDED,
    PING,
    PREFACE,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from firestore_emulator.rpc.server import Server
from tests.conformance.backends import SERVICE, Backend, Place, Refused
from tests.conformance.wire import REQUESTS, query, set_
from tests.emulator.firestore import fuzz
from tests.emulator.firestore.support import FACTOR
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

GET = SERVICE + "GetDocument"


@dataclass
class Served:
    server: Server
    emulator: FirestoreEmulator
    backend: Backend
    escaped: list[Mapping[str, Any]]
    """What reached the event loop's own error handler: nothing may."""

    async def still_answers(self) -> None:
        await self.backend.commit(set_(self.backend.name("c/alive"), {"n": 1}))
        assert await self.backend.fields("c/alive") == {"n": 1}
        assert self.escaped == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[Served]:
    escaped: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: escaped.append(context))
    emulator = FirestoreEmulator()
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with aio.insecure_channel(server.address, options) as channel:
        yield Served(server, emulator, Backend(Place("grpc", channel, server.address)), escaped)
    await server.stop(grace_seconds=0)
    await emulator.stop()


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


@dataclass
class Peer:
    """A client that writes what frames it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    encoder: Encoder = field(default_factory=Encoder)
    decoder: Decoder = field(default_factory=Decoder)

    @classmethod
    async def connect(cls, served: Served, settings: bytes = b"") -> Peer:
        peer = cls(*await asyncio.open_connection(served.server.host, served.server.port))
        peer.writer.write(PREFACE)
        peer.send(SETTINGS, 0, 0, settings)
        return peer

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
        self.writer.write(head + payload)

    def head(self, path: str) -> bytes:
        names = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", "te": "trailers"}
        encoded: bytes = self.encoder.encode(list({**names, "content-type": "application/grpc"}.items()))
        return encoded

    def ask(self, stream: int, path: str, message: bytes) -> None:
        self.send(HEADERS, END_HEADERS, stream, self.head(path))
        self.send(DATA, END_STREAM, stream, framed(message))

    async def read(self) -> Frame | None:
        """None: the server has closed the connection."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = await self.reader.readexactly(9)
                payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return None
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    async def answer(self, stream: int) -> tuple[bytes, dict[str, str]]:
        """Data and headers of a stream, trailers among them, up to its end."""
        data, headers = b"", {}
        while (frame := await self.read()) is not None:
            if frame.kind == HEADERS:
                decoded = self.decoder.decode(frame.payload)
                if frame.stream == stream:
                    headers.update({str(name): str(text) for name, text in decoded})
            elif frame.kind == DATA and frame.stream == stream:
                data += frame.payload
            if frame.stream == stream and frame.flags & END_STREAM and frame.kind in (DATA, HEADERS):
                return data, headers
        pytest.fail("the connection was closed before the answer")

    async def ended_with(self) -> int | None:
        """The code of the server's goodbye, when it has closed the connection."""
        code = None
        while (frame := await self.read()) is not None:
            if frame.kind == GOAWAY:
                code = int.from_bytes(frame.payload[4:8], "big")
        return code

    def close(self) -> None:
        self.writer.close()


def framed(message: bytes, compressed: int = 0) -> bytes:
    return bytes([compressed]) + len(message).to_bytes(4, "big") + message


def get_request(served: Served, path: str = "c/alive") -> bytes:
    data: bytes = REQUESTS["GetDocument"](name=served.backend.name(path)).SerializeToString()
    return data


# --- calls that are unusual, and right


async def test_a_call_in_small_pieces_with_padding_and_continued_headers_is_answered(served: Served) -> None:
    await served.still_answers()
    peer = await Peer.connect(served)
    block = peer.head(GET)
    peer.send(HEADERS, 0, 1, block[:5])
    peer.send(CONTINUATION, 0, 1, block[5:9])
    peer.send(CONTINUATION, END_HEADERS, 1, block[9:])
    message = framed(get_request(served))
    for place in range(0, len(message), 7):
        piece = message[place : place + 7]
        peer.send(DATA, PADDED, 1, b"\x03" + piece + b"\x00" * 3)
    peer.send(DATA, END_STREAM, 1)
    data, headers = await peer.answer(1)
    assert headers["grpc-status"] == "0"
    assert b"c/alive" in data
    peer.close()


async def test_many_calls_at_once_on_one_connection_are_each_answered_with_their_own(served: Served) -> None:
    await served.backend.seed({f"many/{number}": {"n": number} for number in range(200)})
    found = await asyncio.gather(*(served.backend.fields(f"many/{number}") for number in range(200)))
    assert [one["n"] for one in found] == list(range(200))


async def test_a_ping_comes_back(served: Served) -> None:
    peer = await Peer.connect(served)
    peer.send(PING, 0, 0, b"12345678")
    while (frame := await peer.read()) is not None and frame.kind != PING:
        pass
    assert frame == Frame(PING, ACK, 0, b"12345678")
    peer.close()


async def test_an_answer_is_not_sent_faster_than_the_client_opens_its_window(served: Served) -> None:
    await served.backend.seed({"c/large": {"text": "x" * 5000}})
    window = INITIAL_WINDOW_SIZE.to_bytes(2, "big") + (100).to_bytes(4, "big")
    peer = await Peer.connect(served, window)
    peer.ask(1, GET, get_request(served, "c/large"))
    received, allowed = 0, 100
    while True:
        frame = await peer.read()
        assert frame is not None
        if frame.kind == DATA:
            received += len(frame.payload)
            assert received <= allowed
            if received == allowed:
                allowed += 1000
                peer.send(WINDOW_UPDATE, 0, 1, (1000).to_bytes(4, "big"))
        if frame.kind == HEADERS and frame.flags & END_STREAM:
            break
    assert received > 5000
    peer.close()


async def test_a_client_that_reads_nothing_holds_up_no_other(served: Served) -> None:
    window = INITIAL_WINDOW_SIZE.to_bytes(2, "big") + (0).to_bytes(4, "big")
    peer = await Peer.connect(served, window)
    for stream in range(1, 40, 2):
        peer.ask(stream, GET, get_request(served))
    await served.still_answers()
    peer.close()


async def test_messages_of_megabytes_go_both_ways(served: Served) -> None:
    text = "0123456789" * 100_000
    for number in range(4):
        await served.backend.commit(set_(served.backend.name(f"large/{number}"), {"text": text, "n": number}))
    answers = await served.backend.documents(query("large", order=["n"]))
    assert [one.fields["text"].string_value == text for one in answers] == [True] * 4


async def test_the_words_of_a_refusal_arrive_as_they_were_said(served: Served) -> None:
    with pytest.raises(Refused) as refused:
        await served.backend.get("c/100 % “ü”\n😀")
    assert "c/100 % “ü”\n😀" in str(refused.value)


async def test_a_client_that_cancels_ends_its_stream_on_the_server(served: Served) -> None:
    watching = len(served.emulator.engine.after_commit)
    request = REQUESTS["Listen"](database=served.backend.database)
    request.add_target.target_id = 1
    request.add_target.documents.documents.append(served.backend.name("c/alive"))
    listening = served.backend.converse("Listen")
    await listening.send(request)
    assert await listening.read() is not None
    assert len(served.emulator.engine.after_commit) == watching + 1
    listening.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(served.emulator.engine.after_commit) > watching:  # noqa: ASYNC110 - it is a list, not an event
            await asyncio.sleep(0.001)
    await served.still_answers()


async def test_a_deadline_of_the_client_ends_a_call_that_waits(served: Served) -> None:
    backend = served.backend
    await backend.seed({"c/held": {"n": 1}})
    transaction = await backend.begin()
    await backend.get("c/held", transaction=transaction)
    commit = REQUESTS["Commit"](database=backend.database, writes=[set_(backend.name("c/held"), {"n": 2})])
    call = backend.channel.unary_unary(SERVICE + "Commit", lambda message: message.SerializeToString())
    with pytest.raises(aio.AioRpcError) as refused:
        await call(commit, timeout=0.05)
    assert refused.value.code().name == "DEADLINE_EXCEEDED"
    await backend.rollback(transaction)
    assert await backend.fields("c/held") == {"n": 1}


# --- calls that are wrong


WRONG_CALLS: dict[str, tuple[str, bytes, str]] = {
    "no such method": (SERVICE + "Guess", framed(b""), "12"),
    "no path": ("", framed(b""), "12"),
    "no message": (GET, b"", "3"),
    "two messages": (GET, framed(b"") + framed(b""), "3"),
    "half a message": (GET, framed(b"abc")[:-1], "3"),
    "a compressed message": (GET, framed(b"abc", compressed=1), "12"),
    "a message that is none": (GET, framed(b"\xff\xff\xff"), "3"),
    "a message of four gigabytes": (GET, b"\x00\xff\xff\xff\xff", "8"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
async def test_a_wrong_call_is_answered_and_the_connection_lives_on(served: Served, case: str) -> None:
    path, body, status = WRONG_CALLS[case]
    peer = await Peer.connect(served)
    peer.send(HEADERS, END_HEADERS, 1, peer.head(path))
    peer.send(DATA, END_STREAM, 1, body)
    _, headers = await peer.answer(1)
    assert headers["grpc-status"] == status
    peer.ask(3, GET, get_request(served))
    _, headers = await peer.answer(3)
    assert headers["grpc-status"] == "0"
    peer.close()
    await served.still_answers()


# --- connections that break the protocol


BROKEN: dict[str, list[tuple[int, int, int, bytes]]] = {
    "a promise": [(PUSH_PROMISE, 0, 1, b"\x00" * 8)],
    "headers on no stream": [(HEADERS, END_HEADERS, 0, b"")],
    "headers on the server's streams": [(HEADERS, END_HEADERS, 2, b"")],
    "headers that are none": [(HEADERS, END_HEADERS, 1, b"\xff" * 20)],
    "a continuation of nothing": [(CONTINUATION, END_HEADERS, 1, b"")],
    "another frame among continued headers": [(HEADERS, 0, 1, b""), (PING, 0, 0, b"\x00" * 8)],
    "a ping of another length": [(PING, 0, 0, b"1")],
    "a window update of another length": [(WINDOW_UPDATE, 0, 0, b"1")],
    "settings of another length": [(SETTINGS, 0, 0, b"12345")],
    "more padding than there is": [(HEADERS, END_HEADERS | PADDED, 1, b"\x09")],
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_client_that_breaks_the_protocol_gets_an_error_and_cut_off(served: Served, case: str) -> None:
    peer = await Peer.connect(served)
    for frame in BROKEN[case]:
        peer.send(*frame)
    code = await peer.ended_with()
    assert code in (frames.PROTOCOL_ERROR, frames.FRAME_SIZE_ERROR, frames.COMPRESSION_ERROR)
    peer.close()
    await served.still_answers()


async def test_a_frame_of_sixteen_megabytes_is_not_waited_for(served: Served) -> None:
    peer = await Peer.connect(served)
    peer.writer.write(b"\xff\xff\xff" + bytes((DATA, 0)) + (1).to_bytes(4, "big"))
    assert await peer.ended_with() == frames.FRAME_SIZE_ERROR
    peer.close()
    await served.still_answers()


async def test_headers_without_end_are_cut_off(served: Served) -> None:
    peer = await Peer.connect(served)
    peer.send(HEADERS, 0, 1, b"")
    for _ in range(100):
        peer.send(CONTINUATION, 0, 1, b"\x00" * 16_000)
    assert await peer.ended_with() in (frames.COMPRESSION_ERROR, None)
    peer.close()
    await served.still_answers()


async def test_a_conversation_that_is_refused_for_its_bytes_listens_no_longer(served: Served) -> None:
    observers = served.emulator.engine.after_commit
    before = len(observers)

    async def until(count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(observers) != count:  # noqa: ASYNC110 - the engine has no event for listeners
                await asyncio.sleep(0.001)

    peer = await Peer.connect(served)
    peer.send(HEADERS, END_HEADERS, 1, peer.head(SERVICE + "Listen"))
    await until(before + 1)
    peer.send(DATA, 0, 1, framed(b"abc", compressed=1))
    _, headers = await peer.answer(1)
    assert headers["grpc-status"] == "12"
    await until(before)
    peer.close()


async def test_random_frames_never_harm_anybody_else(served: Served) -> None:
    """Frames of all kinds on a few streams, real calls among them, and the connection dropped anywhere."""
    for seed in range(60 * FACTOR):
        rng = Random(seed)
        peer = await Peer.connect(served)
        for _ in range(rng.randint(1, 40)):
            random_frame(peer, rng)
        if rng.random() < 0.5:
            peer.writer.transport.abort()
        else:
            peer.writer.write_eof()
            await peer.ended_with()
            peer.close()
        assert served.escaped == [], seed
    await served.still_answers()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(served.server._calls) > 1:  # noqa: ASYNC110 - the kernel tells the other side when it does
            await asyncio.sleep(0.001)


def random_frame(peer: Peer, rng: Random) -> None:
    stream = rng.choice([0, 1, 1, 3, 5, 7, 2, 2**31 - 1])
    match rng.randrange(6):
        case 0:
            peer.send(rng.randrange(12), rng.randrange(256), stream, rng.randbytes(rng.choice([0, 4, 5, 6, 8, 30])))
        case 1:
            method, message = fuzz.request(rng)
            peer.send(HEADERS, END_HEADERS, stream, peer.head(SERVICE + method))
            peer.send(DATA, rng.choice([0, END_STREAM]), stream, framed(message.SerializeToString()))
        case 2:
            peer.send(DATA, rng.choice([0, END_STREAM]), stream, framed(rng.randbytes(rng.randrange(9))))
        case 3:
            peer.send(WINDOW_UPDATE, 0, stream, rng.choice([0, 1, 2**31 - 1]).to_bytes(4, "big"))
        case 4:
            peer.send(RST_STREAM, 0, stream, b"\x00\x00\x00\x08")
        case _:
            name, number = rng.randrange(8), rng.choice([0, 1, 16_384, 2**32 - 1])
            peer.send(SETTINGS, 0, 0, name.to_bytes(2, "big") + number.to_bytes(4, "big"))


async def test_a_stopped_server_says_goodbye() -> None:
    emulator = FirestoreEmulator()
    server = await Server.start(emulator.service)
    served = Served(server, emulator, Backend(Place("grpc", aio.insecure_channel(server.address), None)), [])
    peer = await Peer.connect(served)
    peer.ask(1, GET, get_request(served))
    await peer.answer(1)
    await server.stop(grace_seconds=0)
    assert await peer.ended_with() == frames.NO_ERROR
    peer.close()
    await served.backend.channel.close()
    await emulator.stop()
