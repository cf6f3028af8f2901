"""gRPC over HTTP/2, the server's side of it, written for one thing: many small calls on one event loop.

Why not grpcio's own server: it spends about a quarter of a millisecond on each message of a stream and a third on each
call, which is several times what the engines behind it need, and it accepts no connection that somebody else opened,
so one port could not serve HTTP/1.1 beside it without copying every byte twice. What is needed here is small: cleartext
connections with prior knowledge, calls without compression, answers whose headers never change.

All that becomes ready in one turn of the event loop goes out in one write: the fifty documents of a query are a packet
or two, not fifty round trips through a scheduler.

HPACK decoding is the `hpack` library's; encoding needs no table, since every header block we send is constant but
for an error's text. Flow control is obeyed when sending; when receiving, windows are opened wide and kept open, and
the size of a message is limited instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError
from hpack import Decoder, HPACKError

from emulator.rpc.errors import RpcError, invalid_argument, resource_exhausted, unimplemented
from emulator.rpc.service import BidiStream, Call, Message, Method, ServerStream, Unary, refusal_of

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""What the transport takes in. The engine refuses at production's own, smaller limit, with production's status."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 0x4, 0x5, 0x6

OUR_MAX_FRAME = 1 << 20
WIDE_WINDOW = (1 << 31) - 1
DEFAULT_WINDOW = 65_535
REOPEN_AFTER = 1 << 28
WRITE_CHUNK = 64 * 1024
MAX_HEADER_BYTES = 256 * 1024

NO_ERROR, PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR = 0x0, 0x1, 0x6, 0x9


def _literal(name: bytes, value: bytes) -> bytes:
    """A header that no table keeps."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    """HPACK's integer with a prefix of seven bits."""
    if number < 127:
        return bytes([number])
    out = bytearray([127])
    number -= 127
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


_STATUS_200 = b"\x88"  # the eighth entry of HPACK's fixed table
_RESPONSE_HEADERS = _STATUS_200 + _literal(b"content-type", b"application/grpc")
_OK_TRAILERS = _literal(b"grpc-status", b"0")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _error_trailers(refusal: RpcError) -> bytes:
    text = "".join(chr(b) if 0x20 <= b <= 0x7E and b != 0x25 else f"%{b:02X}" for b in refusal.message.encode())
    # Clients limit the size of what they take as metadata.
    return _literal(b"grpc-status", str(refusal.code.value[0]).encode()) + _literal(
        b"grpc-message", text[:4000].encode()
    )


class _Broken(Exception):
    """The peer broke the protocol; the connection ends with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(eq=False, slots=True)
class _Stream:
    id: int
    window: int
    """How many bytes we may still send on it."""
    path: str = ""
    method: Method | None = None
    call: Call = field(default_factory=lambda: Call(metadata={}))
    received: bytearray = field(default_factory=bytearray)
    messages: deque[bytes] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    is_complete: bool = False
    """The client has sent all it will."""
    has_headers: bool = False
    """Whether our headers were sent."""
    is_closed: bool = False
    task: asyncio.Task[None] | None = None


class Http2Connection(asyncio.Protocol):
    """One client's connection, from behind the preface on."""

    def __init__(self, methods: Mapping[str, Method], everyone: set[Http2Connection]) -> None:
        self._methods = methods
        self._everyone = everyone
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._input = bytearray()
        self._output: list[bytes] = []
        self._flush_is_due = False
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BYTES)
        self._streams: dict[int, _Stream] = {}
        self._last_stream = 0
        self._window = DEFAULT_WINDOW
        self._their_initial_window = DEFAULT_WINDOW
        self._their_max_frame = 16_384
        self._window_grew = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._unacknowledged = 0
        self._headers_of: tuple[int, int, bytearray] | None = None
        """(stream, flags, block so far), while a header block comes in several frames."""
        self._is_ending = False

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._everyone.add(self)
        settings = b"".join(
            name.to_bytes(2, "big") + value.to_bytes(4, "big")
            for name, value in (
                (INITIAL_WINDOW_SIZE, WIDE_WINDOW),
                (MAX_FRAME_SIZE, OUR_MAX_FRAME),
                (MAX_HEADER_LIST_SIZE, MAX_HEADER_BYTES),
            )
        )
        self._send(_frame(SETTINGS, 0, 0, settings))
        self._send(_frame(WINDOW_UPDATE, 0, 0, (WIDE_WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")))

    def connection_lost(self, error: Exception | None) -> None:
        self._everyone.discard(self)
        self._transport = None
        self._drained.set()
        self._window_grew.set()
        for stream in list(self._streams.values()):
            self._close(stream)

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        buffer = self._input
        buffer += data
        start, size = 0, len(buffer)
        try:
            while size - start >= 9:
                length = int.from_bytes(buffer[start : start + 3], "big")
                if length > OUR_MAX_FRAME:
                    raise _Broken(FRAME_SIZE_ERROR)
                end = start + 9 + length
                if end > size:
                    break
                stream = int.from_bytes(buffer[start + 5 : start + 9], "big") & 0x7FFFFFFF
                self._on_frame(buffer[start + 3], buffer[start + 4], stream, bytes(buffer[start + 9 : end]))
                start = end
        except _Broken as broken:
            self._fail(broken.code)
            return
        except HPACKError:
            self._fail(COMPRESSION_ERROR)
            return
        del buffer[:start]

    def _send(self, data: bytes) -> None:
        """Sent with everything else of this turn of the event loop."""
        self._output.append(data)
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._transport is not None and self._output:
            self._transport.write(b"".join(self._output))
        self._output.clear()

    def _fail(self, code: int) -> None:
        self._goodbye(code)
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _goodbye(self, code: int) -> None:
        self._send(_frame(GOAWAY, 0, 0, self._last_stream.to_bytes(4, "big") + code.to_bytes(4, "big")))

    async def end(self, grace_seconds: float) -> None:
        """No new calls; those under way have a moment to finish."""
        self._is_ending = True
        self._goodbye(NO_ERROR)
        tasks = [stream.task for stream in self._streams.values() if stream.task is not None]
        if tasks and grace_seconds > 0:
            await asyncio.wait(tasks, timeout=grace_seconds)
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # --- frames

    def _on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if self._headers_of is not None and kind != CONTINUATION:
            raise _Broken(PROTOCOL_ERROR)
        if kind == DATA:
            self._on_data(flags, stream_id, payload)
        elif kind == HEADERS:
            self._on_headers(flags, stream_id, payload)
        elif kind == WINDOW_UPDATE:
            self._on_window_update(stream_id, payload)
        elif kind == SETTINGS:
            self._on_settings(flags, payload)
        elif kind == PING:
            if len(payload) != 8:
                raise _Broken(FRAME_SIZE_ERROR)
            if not flags & ACK:
                self._send(_frame(PING, ACK, 0, payload))
        elif kind == RST_STREAM:
            stream = self._streams.get(stream_id)
            if stream is not None:
                self._close(stream)
        elif kind == CONTINUATION:
            self._on_continuation(flags, stream_id, payload)
        elif kind == PUSH_PROMISE:
            raise _Broken(PROTOCOL_ERROR)
        # PRIORITY, GOAWAY and kinds that we do not know ask for nothing.

    def _on_settings(self, flags: int, payload: bytes) -> None:
        if flags & ACK:
            return
        if len(payload) % 6:
            raise _Broken(FRAME_SIZE_ERROR)
        for at in range(0, len(payload), 6):
            name = int.from_bytes(payload[at : at + 2], "big")
            value = int.from_bytes(payload[at + 2 : at + 6], "big")
            if name == INITIAL_WINDOW_SIZE:
                for stream in self._streams.values():
                    stream.window += value - self._their_initial_window
                self._their_initial_window = value
                self._window_grew.set()
            elif name == MAX_FRAME_SIZE:
                self._their_max_frame = max(16_384, min(value, (1 << 24) - 1))
        self._send(_frame(SETTINGS, ACK, 0, b""))

    def _on_window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise _Broken(FRAME_SIZE_ERROR)
        more = int.from_bytes(payload, "big") & 0x7FFFFFFF
        if stream_id == 0:
            self._window += more
        elif stream_id in self._streams:
            self._streams[stream_id].window += more
        self._window_grew.set()

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        payload = _unpadded(flags, payload)
        if flags & HAS_PRIORITY:
            payload = payload[5:]
        if stream_id == 0 or stream_id % 2 == 0:
            raise _Broken(PROTOCOL_ERROR)
        if flags & END_HEADERS:
            self._on_header_block(stream_id, flags, payload)
        else:
            self._headers_of = (stream_id, flags, bytearray(payload))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self._headers_of is None or self._headers_of[0] != stream_id:
            raise _Broken(PROTOCOL_ERROR)
        _, first_flags, block = self._headers_of
        block += payload
        if len(block) > MAX_HEADER_BYTES:
            raise _Broken(COMPRESSION_ERROR)
        if flags & END_HEADERS:
            self._headers_of = None
            self._on_header_block(stream_id, first_flags, bytes(block))

    def _on_header_block(self, stream_id: int, flags: int, block: bytes) -> None:
        headers = self._decoder.decode(block, raw=True)  # always: the table must stay in step
        known = self._streams.get(stream_id)
        if known is not None:
            if flags & END_STREAM:
                self._on_complete(known)
            return
        if stream_id <= self._last_stream or self._is_ending:
            return  # a stream that has ended, or that came after we said goodbye
        self._last_stream = stream_id
        metadata = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        path = metadata.get(":path", "")
        stream = _Stream(stream_id, self._their_initial_window, path, self._methods.get(path), Call(metadata))
        self._streams[stream_id] = stream
        if stream.method is None:
            self._refuse(stream, unimplemented(f"Method not found: {path[:200]}"))
        elif isinstance(stream.method, BidiStream):
            self._run(stream, self._converse(stream, stream.method))
        if flags & END_STREAM:
            self._on_complete(stream)

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._unacknowledged += len(payload)
        if self._unacknowledged > REOPEN_AFTER:
            self._send(_frame(WINDOW_UPDATE, 0, 0, self._unacknowledged.to_bytes(4, "big")))
            self._unacknowledged = 0
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.received += _unpadded(flags, payload)
        try:
            self._take_messages(stream)
        except RpcError as refusal:
            self._refuse(stream, refusal)
            return
        if flags & END_STREAM:
            self._on_complete(stream)

    @staticmethod
    def _take_messages(stream: _Stream) -> None:
        received = stream.received
        while len(received) >= 5:
            length = int.from_bytes(received[1:5], "big")
            if length > MAX_MESSAGE_BYTES:
                raise resource_exhausted(f"A message of {length} bytes is larger than {MAX_MESSAGE_BYTES}.")
            if received[0]:
                raise unimplemented("Compressed messages are not supported.")
            if len(received) < 5 + length:
                return
            stream.messages.append(bytes(received[5 : 5 + length]))
            del received[: 5 + length]
            stream.arrived.set()

    def _on_complete(self, stream: _Stream) -> None:
        stream.is_complete = True
        stream.arrived.set()
        method = stream.method
        if stream.task is not None or stream.is_closed or method is None or isinstance(method, BidiStream):
            return
        if len(stream.messages) != 1 or stream.received:
            self._refuse(stream, invalid_argument("The call needs one whole request message."))
        elif isinstance(method, Unary):
            self._run(stream, self._answer(stream, method))
        else:
            self._run(stream, self._stream_out(stream, method))

    # --- calls

    def _run(self, stream: _Stream, work: Coroutine[Any, Any, None]) -> None:
        stream.task = self._loop.create_task(work)
        stream.task.add_done_callback(lambda _: self._close(stream))

    async def _answer(self, stream: _Stream, method: Unary) -> None:
        try:
            response = await method.handler(_parsed(method, stream.messages[0]), stream.call)
        except Exception as error:  # noqa: BLE001 - the border: whatever a handler raises becomes a status
            self._refuse(stream, refusal_of(error, stream.path))
            return
        data: bytes = response.SerializeToString()
        await self._write(stream, _message(data))
        self._finish(stream)

    async def _stream_out(self, stream: _Stream, method: ServerStream) -> None:
        chunk: list[bytes] = []
        size = 0
        try:
            async for item in method.handler(_parsed(method, stream.messages[0]), stream.call):
                data = _message(item.SerializeToString())
                chunk.append(data)
                size += len(data)
                if size > WRITE_CHUNK:
                    await self._write(stream, b"".join(chunk))
                    chunk, size = [], 0
        except Exception as error:  # noqa: BLE001 - the border, as above
            await self._write(stream, b"".join(chunk))
            self._refuse(stream, refusal_of(error, stream.path))
            return
        await self._write(stream, b"".join(chunk))
        self._finish(stream)

    async def _converse(self, stream: _Stream, method: BidiStream) -> None:
        async def requests() -> AsyncIterator[Message]:
            while True:
                while stream.messages:
                    yield _parsed(method, stream.messages.popleft())
                if stream.is_complete:
                    return
                stream.arrived.clear()
                await stream.arrived.wait()

        try:
            self._head(stream)  # a client may wait for these before it asks for anything
            async for item in method.handler(requests(), stream.call):
                await self._write(stream, _message(item.SerializeToString()))
        except Exception as error:  # noqa: BLE001 - the border, as above
            self._refuse(stream, refusal_of(error, stream.path))
            return
        self._finish(stream)

    # --- answers

    def _head(self, stream: _Stream) -> None:
        if not stream.has_headers:
            stream.has_headers = True
            self._send(_frame(HEADERS, END_HEADERS, stream.id, _RESPONSE_HEADERS))

    async def _write(self, stream: _Stream, data: bytes) -> None:
        self._head(stream)
        start, size = 0, len(data)
        while start < size and not stream.is_closed:
            room = min(self._window, stream.window, self._their_max_frame, size - start)
            if room <= 0:
                self._window_grew.clear()
                await self._window_grew.wait()
                continue
            self._send(_frame(DATA, 0, stream.id, data[start : start + room]))
            self._window -= room
            stream.window -= room
            start += room
            if not self._drained.is_set():
                await self._drained.wait()

    def _finish(self, stream: _Stream) -> None:
        if not stream.is_closed:
            self._send(_frame(HEADERS, END_HEADERS | END_STREAM, stream.id, _OK_TRAILERS))
            self._forget(stream)

    def _refuse(self, stream: _Stream, refusal: RpcError) -> None:
        if stream.is_closed:
            return
        block = _error_trailers(refusal)
        if not stream.has_headers:
            block = _RESPONSE_HEADERS + block
        self._send(_frame(HEADERS, END_HEADERS | END_STREAM, stream.id, block))
        # What the client still sends on it is dropped. (RST_STREAM would say so; grpc's C core takes it for a fault.)
        self._forget(stream)

    def _forget(self, stream: _Stream) -> None:
        stream.is_closed = True
        self._streams.pop(stream.id, None)

    def _close(self, stream: _Stream) -> None:
        """It ends without another word: the client went away, or the call is over."""
        self._forget(stream)
        self._window_grew.set()
        if stream.task is not None and not stream.task.done():
            stream.task.cancel()


def _message(data: bytes) -> bytes:
    return b"\x00" + len(data).to_bytes(4, "big") + data


def _parsed(method: Method, data: bytes) -> Message:
    try:
        return method.request.FromString(data)
    except DecodeError:
        raise invalid_argument("The request is not a message of this method.") from None


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise _Broken(PROTOCOL_ERROR)
    return payload[1 : len(payload) - payload[0]]
