"""The sending side of an HTTP/2 connection: frames out, under the client's flow control.

All that becomes ready in one turn of the event loop goes out in one write: the fifty documents of a query are a packet
or two, not fifty round trips through a scheduler.
"""

from __future__ import annotations

import asyncio

from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    OK_TRAILERS,
    RESPONSE_HEADERS,
    error_trailers,
    frame,
)
from firestore_emulator.rpc.http2_stream import Stream

DEFAULT_WINDOW = 65_535
SMALLEST_MAX_FRAME = 16_384


class Sender:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._output: list[bytes] = []
        self._flush_is_due = False
        self.streams: dict[int, Stream] = {}
        """The calls under way. One that has its last frame is taken out."""
        self.initial_window = DEFAULT_WINDOW
        self._window = DEFAULT_WINDOW
        self._max_frame = SMALLEST_MAX_FRAME
        self._window_grew = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    # --- the transport

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def detach(self) -> None:
        """The connection is gone: let those who wait to send find out."""
        self._transport = None
        self._drained.set()
        self._window_grew.set()

    def pause(self) -> None:
        self._drained.clear()

    def resume(self) -> None:
        self._drained.set()

    def send(self, data: bytes) -> None:
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

    def say_goodbye(self, code: int, last_stream: int) -> None:
        self.send(frame(GOAWAY, 0, 0, last_stream.to_bytes(4, "big") + code.to_bytes(4, "big")))

    def close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # --- flow control

    def set_initial_window(self, value: int) -> None:
        for stream in self.streams.values():
            stream.window += value - self.initial_window
        self.initial_window = value
        self._window_grew.set()

    def set_max_frame(self, value: int) -> None:
        self._max_frame = max(SMALLEST_MAX_FRAME, min(value, (1 << 24) - 1))

    def widen(self, stream_id: int, more: int) -> None:
        """The client takes `more` bytes, on one stream or (0) on the connection."""
        if stream_id == 0:
            self._window += more
        elif stream_id in self.streams:
            self.streams[stream_id].window += more
        self._window_grew.set()

    # --- answers

    def head(self, stream: Stream) -> None:
        if not stream.has_headers:
            stream.has_headers = True
            self.send(frame(HEADERS, END_HEADERS, stream.id, RESPONSE_HEADERS))

    async def write(self, stream: Stream, data: bytes) -> None:
        self.head(stream)
        start, size = 0, len(data)
        while start < size and not stream.is_closed:
            room = min(self._window, stream.window, self._max_frame, size - start)
            if room <= 0:
                self._window_grew.clear()
                await self._window_grew.wait()
                continue
            self.send(frame(DATA, 0, stream.id, data[start : start + room]))
            self._window -= room
            stream.window -= room
            start += room
            if not self._drained.is_set():
                await self._drained.wait()

    def finish(self, stream: Stream) -> None:
        if not stream.is_closed:
            self.send(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, OK_TRAILERS))
            self._forget(stream)

    def refuse(self, stream: Stream, refusal: RpcError) -> None:
        if stream.is_closed:
            return
        block = error_trailers(refusal)
        if not stream.has_headers:
            block = RESPONSE_HEADERS + block
        self.send(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, block))
        # What the client still sends on it is dropped. (RST_STREAM would say so; grpc's C core takes it for a fault.)
        self._forget(stream)

    def drop(self, stream: Stream) -> None:
        """End a call without another frame: the client went away, or the answer is complete."""
        self._forget(stream)
        self._window_grew.set()
        if stream.task is not None and not stream.task.done():
            stream.task.cancel()

    def _forget(self, stream: Stream) -> None:
        stream.is_closed = True
        self.streams.pop(stream.id, None)
