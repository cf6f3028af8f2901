"""gRPC over HTTP/2, the server's side of it, written for one thing: many small calls on one event loop.

Why not grpcio's own server: it spends about a quarter of a millisecond on each message of a stream and a third on each
call, which is several times what the engines behind it need, and it accepts no connection that another part opened,
so one port could not serve HTTP/1.1 beside it without copying every byte twice. What is needed here is small: cleartext
connections with prior knowledge, calls without compression, answers whose headers never change.

What frames and headers look like is in `frames.py`; here is what they mean. `http2_sender.py` obeys flow control when
sending; when receiving, windows are opened wide and kept open, and the size of a message is limited instead.
`http2_calls.py` runs the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from hpack import HPACKError

from firestore_emulator.rpc import http2_calls
from firestore_emulator.rpc.errors import RpcError, invalid_argument, unimplemented
from firestore_emulator.rpc.frames import (
    ACK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEADER,
    FRAME_SIZE_ERROR,
    HAS_PRIORITY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_HEADER_BYTES,
    MAX_HEADER_LIST_SIZE,
    NO_ERROR,
    PING,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Broken,
    HeaderReader,
    frame,
    unpadded,
)
from firestore_emulator.rpc.http2_sender import DEFAULT_WINDOW, Sender
from firestore_emulator.rpc.http2_stream import Stream, take_messages
from firestore_emulator.rpc.service import BidiStream, Method, Unary

OUR_MAX_FRAME = 1 << 20
WIDE_WINDOW = (1 << 31) - 1
REOPEN_AFTER = 1 << 28


class Http2Connection(asyncio.Protocol):
    """One client's connection, from behind the preface on."""

    def __init__(self, methods: Mapping[str, Method], everyone: set[Http2Connection]) -> None:
        self._methods = methods
        self._everyone = everyone
        self._loop = asyncio.get_running_loop()
        self._sender = Sender()
        self._streams = self._sender.streams
        self._input = b""
        self._headers = HeaderReader()
        self._last_stream = 0
        self._unacknowledged = 0
        self._headers_of: tuple[int, int, bytearray] | None = None
        """(stream, flags, block so far), while a header block comes in several frames."""
        self._is_ending = False

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._sender.attach(transport)
        self._everyone.add(self)
        settings = b"".join(
            name.to_bytes(2, "big") + value.to_bytes(4, "big")
            for name, value in (
                (INITIAL_WINDOW_SIZE, WIDE_WINDOW),
                (MAX_FRAME_SIZE, OUR_MAX_FRAME),
                (MAX_HEADER_LIST_SIZE, MAX_HEADER_BYTES),
            )
        )
        self._sender.send(frame(SETTINGS, 0, 0, settings))
        self._sender.send(frame(WINDOW_UPDATE, 0, 0, (WIDE_WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")))

    def connection_lost(self, error: Exception | None) -> None:
        self._everyone.discard(self)
        self._sender.detach()
        for stream in list(self._streams.values()):
            self._sender.drop(stream)

    def pause_writing(self) -> None:
        self._sender.pause()

    def resume_writing(self) -> None:
        self._sender.resume()

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

    def _fail(self, code: int) -> None:
        self._sender.say_goodbye(code, self._last_stream)
        self._sender.close()

    async def end(self, grace_seconds: float) -> None:
        """No new calls; those under way have a moment to finish."""
        self._is_ending = True
        self._sender.say_goodbye(NO_ERROR, self._last_stream)
        tasks = [stream.task for stream in self._streams.values() if stream.task is not None]
        if tasks and grace_seconds > 0:
            await asyncio.wait(tasks, timeout=grace_seconds)
        self._sender.close()

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
                self._sender.send(frame(PING, ACK, 0, payload))
        elif kind == RST_STREAM:
            stream = self._streams.get(stream_id)
            if stream is not None:
                self._sender.drop(stream)
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
                self._sender.set_initial_window(value)
            elif name == MAX_FRAME_SIZE:
                self._sender.set_max_frame(value)
        self._sender.send(frame(SETTINGS, ACK, 0, b""))

    def _on_window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Broken(FRAME_SIZE_ERROR)
        self._sender.widen(stream_id, int.from_bytes(payload, "big") & 0x7FFFFFFF)

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
        stream = Stream(stream_id, self._sender.initial_window, path, self._methods.get(path), call)
        self._streams[stream_id] = stream
        if stream.method is None:
            self._sender.refuse(stream, unimplemented(f"Method not found: {path[:200]}"))
        elif isinstance(stream.method, BidiStream):
            self._run(stream, http2_calls.converse(self._sender, stream, stream.method))
        if flags & END_STREAM:
            self._on_complete(stream)

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._unacknowledged += len(payload)
        if self._unacknowledged > REOPEN_AFTER:
            self._sender.send(frame(WINDOW_UPDATE, 0, 0, self._unacknowledged.to_bytes(4, "big")))
            self._unacknowledged = 0
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        try:
            take_messages(stream, unpadded(flags, payload))
        except RpcError as refusal:
            self._sender.refuse(stream, refusal)
            self._sender.drop(stream)
            return
        if flags & END_STREAM:
            self._on_complete(stream)

    def _on_complete(self, stream: Stream) -> None:
        stream.is_complete = True
        stream.wake()
        method = stream.method
        if stream.task is not None or stream.is_closed or method is None or isinstance(method, BidiStream):
            return
        if len(stream.messages) != 1 or stream.received:
            self._sender.refuse(stream, invalid_argument("The call needs one whole request message."))
        elif isinstance(method, Unary):
            self._run(stream, http2_calls.answer(self._sender, stream, method))
        else:
            self._run(stream, http2_calls.stream_out(self._sender, stream, method))

    # --- calls

    def _run(self, stream: Stream, work: Coroutine[Any, Any, None]) -> None:
        stream.task = self._loop.create_task(work)
        stream.task.add_done_callback(lambda _: self._sender.drop(stream))
