"""gRPC over HTTP/2, the server's side of it, written for one thing: many small calls on one event loop.

Why not grpcio's own server: it spends about a quarter of a millisecond on each message of a stream and a third on each
call, which is several times what the engines behind it need, and it accepts no connection that somebody else opened,
so one port could not serve HTTP/1.1 beside it without copying every byte twice. What is needed here is small: cleartext
connections with prior knowledge, calls without compression, answers whose headers never change.

All that becomes ready in one turn of the event loop goes out in one write: the fifty documents of a query are a packet
or two, not fifty round trips through a scheduler.

What frames and headers look like is in `frames.py`; here is what they mean. Flow control is obeyed when sending; when
receiving, windows are opened wide and kept open, and the size of a message is limited instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from hpack import HPACKError

from firestore_emulator.rpc.errors import RpcError, invalid_argument, resource_exhausted, unimplemented
from firestore_emulator.rpc.frames import (
    ACK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEADER,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_HEADER_BYTES,
    MAX_HEADER_LIST_SIZE,
    MESSAGE_HEADER,
    NO_ERROR,
    OK_TRAILERS,
    PING,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RESPONSE_HEADERS,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Broken,
    HeaderReader,
    error_trailers,
    frame,
    message,
    unpadded,
)
from firestore_emulator.rpc.service import BidiStream, Call, Message, Method, ServerStream, Unary, refusal_of

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""What the transport takes in. The engine refuses at production's own, smaller limit, with production's status."""

OUR_MAX_FRAME = 1 << 20
WIDE_WINDOW = (1 << 31) - 1
DEFAULT_WINDOW = 65_535
REOPEN_AFTER = 1 << 28
WRITE_CHUNK = 64 * 1024


class _Stream:
    """One call."""

    __slots__ = (
        "arrived",
        "call",
        "has_headers",
        "id",
        "is_closed",
        "is_complete",
        "messages",
        "method",
        "path",
        "received",
        "task",
        "window",
    )

    def __init__(self, number: int, window: int, path: str, method: Method | None, call: Call) -> None:
        self.id = number
        self.window = window
        """How many bytes we may still send on it."""
        self.path = path
        self.method = method
        self.call = call
        self.received = bytearray()
        """Of a message that is not there as a whole yet."""
        self.messages: deque[bytes] = deque()
        self.arrived: asyncio.Event | None = None
        """For who waits for a message; only a conversation does."""
        self.is_complete = False
        """The client has sent all it will."""
        self.has_headers = False
        """Whether our headers were sent."""
        self.is_closed = False
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self.arrived is not None:
            self.arrived.set()


class Http2Connection(asyncio.Protocol):
    """One client's connection, from behind the preface on."""

    def __init__(self, methods: Mapping[str, Method], everyone: set[Http2Connection]) -> None:
        self._methods = methods
        self._everyone = everyone
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._input = b""
        self._output: list[bytes] = []
        self._flush_is_due = False
        self._headers = HeaderReader()
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
        self._send(frame(SETTINGS, 0, 0, settings))
        self._send(frame(WINDOW_UPDATE, 0, 0, (WIDE_WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")))

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
        buffer = self._input + data if self._input else data
        start, size = 0, len(buffer)
        try:
            while size - start >= 9:
                upper, lower, kind, flags, stream_id = FRAME_HEADER.unpack_from(buffer, start)
                length = upper << 8 | lower
                if length > OUR_MAX_FRAME:
                    raise Broken(FRAME_SIZE_ERROR)
                end = start + 9 + length
                if end > size:
                    break
                self._on_frame(kind, flags, stream_id & 0x7FFFFFFF, buffer[start + 9 : end])
                start = end
        except Broken as broken:
            self._fail(broken.code)
            return
        except HPACKError:
            self._fail(COMPRESSION_ERROR)
            return
        self._input = buffer[start:]

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
        self._send(frame(GOAWAY, 0, 0, self._last_stream.to_bytes(4, "big") + code.to_bytes(4, "big")))

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
            raise Broken(PROTOCOL_ERROR)
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
                raise Broken(FRAME_SIZE_ERROR)
            if not flags & ACK:
                self._send(frame(PING, ACK, 0, payload))
        elif kind == RST_STREAM:
            stream = self._streams.get(stream_id)
            if stream is not None:
                self._close(stream)
        elif kind == CONTINUATION:
            self._on_continuation(flags, stream_id, payload)
        elif kind == PUSH_PROMISE:
            raise Broken(PROTOCOL_ERROR)
        # PRIORITY, GOAWAY and kinds that we do not know ask for nothing.

    def _on_settings(self, flags: int, payload: bytes) -> None:
        if flags & ACK:
            return
        if len(payload) % 6:
            raise Broken(FRAME_SIZE_ERROR)
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
        self._send(frame(SETTINGS, ACK, 0, b""))

    def _on_window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Broken(FRAME_SIZE_ERROR)
        more = int.from_bytes(payload, "big") & 0x7FFFFFFF
        if stream_id == 0:
            self._window += more
        elif stream_id in self._streams:
            self._streams[stream_id].window += more
        self._window_grew.set()

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        payload = unpadded(flags, payload)
        if flags & HAS_PRIORITY:
            payload = payload[5:]
        if stream_id == 0 or stream_id % 2 == 0:
            raise Broken(PROTOCOL_ERROR)
        if flags & END_HEADERS:
            self._on_header_block(stream_id, flags, payload)
        else:
            self._headers_of = (stream_id, flags, bytearray(payload))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self._headers_of is None or self._headers_of[0] != stream_id:
            raise Broken(PROTOCOL_ERROR)
        _, first_flags, block = self._headers_of
        block += payload
        if len(block) > MAX_HEADER_BYTES:
            raise Broken(COMPRESSION_ERROR)
        if flags & END_HEADERS:
            self._headers_of = None
            self._on_header_block(stream_id, first_flags, bytes(block))

    def _on_header_block(self, stream_id: int, flags: int, block: bytes) -> None:
        path, call = self._headers.read(block)
        known = self._streams.get(stream_id)
        if known is not None:
            if flags & END_STREAM:
                self._on_complete(known)
            return
        if stream_id <= self._last_stream or self._is_ending:
            return  # a stream that has ended, or that came after we said goodbye
        self._last_stream = stream_id
        stream = _Stream(stream_id, self._their_initial_window, path, self._methods.get(path), call)
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
            self._send(frame(WINDOW_UPDATE, 0, 0, self._unacknowledged.to_bytes(4, "big")))
            self._unacknowledged = 0
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        try:
            _take_messages(stream, unpadded(flags, payload))
        except RpcError as refusal:
            self._refuse(stream, refusal)
            self._close(stream)
            return
        if flags & END_STREAM:
            self._on_complete(stream)

    def _on_complete(self, stream: _Stream) -> None:
        stream.is_complete = True
        stream.wake()
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
        await self._write(stream, message(data))
        self._finish(stream)

    async def _stream_out(self, stream: _Stream, method: ServerStream) -> None:
        chunk: list[bytes] = []
        size = 0
        try:
            async for item in method.handler(_parsed(method, stream.messages[0]), stream.call):
                data = message(item.SerializeToString())
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
        arrived = stream.arrived = asyncio.Event()

        async def requests() -> AsyncIterator[Message]:
            while True:
                while stream.messages:
                    yield _parsed(method, stream.messages.popleft())
                if stream.is_complete:
                    return
                arrived.clear()
                await arrived.wait()

        try:
            self._head(stream)  # a client may wait for these before it asks for anything
            async for item in method.handler(requests(), stream.call):
                await self._write(stream, message(item.SerializeToString()))
        except Exception as error:  # noqa: BLE001 - the border, as above
            self._refuse(stream, refusal_of(error, stream.path))
            return
        self._finish(stream)

    # --- answers

    def _head(self, stream: _Stream) -> None:
        if not stream.has_headers:
            stream.has_headers = True
            self._send(frame(HEADERS, END_HEADERS, stream.id, RESPONSE_HEADERS))

    async def _write(self, stream: _Stream, data: bytes) -> None:
        self._head(stream)
        start, size = 0, len(data)
        while start < size and not stream.is_closed:
            room = min(self._window, stream.window, self._their_max_frame, size - start)
            if room <= 0:
                self._window_grew.clear()
                await self._window_grew.wait()
                continue
            self._send(frame(DATA, 0, stream.id, data[start : start + room]))
            self._window -= room
            stream.window -= room
            start += room
            if not self._drained.is_set():
                await self._drained.wait()

    def _finish(self, stream: _Stream) -> None:
        if not stream.is_closed:
            self._send(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, OK_TRAILERS))
            self._forget(stream)

    def _refuse(self, stream: _Stream, refusal: RpcError) -> None:
        if stream.is_closed:
            return
        block = error_trailers(refusal)
        if not stream.has_headers:
            block = RESPONSE_HEADERS + block
        self._send(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, block))
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


def _take_messages(stream: _Stream, payload: bytes) -> None:
    """Puts the messages that are there as a whole where the call finds them."""
    received: bytes | bytearray = payload
    if stream.received:
        stream.received += payload
        received = stream.received
    start, size = 0, len(received)
    while size - start >= 5:
        is_compressed, length = MESSAGE_HEADER.unpack_from(received, start)
        if length > MAX_MESSAGE_BYTES:
            raise resource_exhausted(f"A message of {length} bytes is larger than {MAX_MESSAGE_BYTES}.")
        if is_compressed:
            raise unimplemented("Compressed messages are not supported.")
        end = start + 5 + length
        if end > size:
            break
        stream.messages.append(bytes(received[start + 5 : end]))
        start = end
        stream.wake()
    if start or received is payload:
        stream.received = bytearray(received[start:])


def _parsed(method: Method, data: bytes) -> Message:
    try:
        return method.request.FromString(data)
    except DecodeError:
        raise invalid_argument("The request is not a message of this method.") from None
