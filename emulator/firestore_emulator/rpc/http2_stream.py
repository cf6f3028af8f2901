"""One call on an HTTP/2 connection: what has arrived of it, and how much may still be sent."""

from __future__ import annotations

import asyncio
from collections import deque

from firestore_emulator.rpc.errors import resource_exhausted, unimplemented
from firestore_emulator.rpc.frames import MESSAGE_HEADER
from firestore_emulator.rpc.service import Call, Method

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""What the transport takes in. The engine refuses at production's own, smaller limit, with production's status."""


class Stream:
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
        """Set when a message arrives; only a conversation waits for it."""
        self.is_complete = False
        """The client has sent all it will."""
        self.has_headers = False
        """Whether our headers were sent."""
        self.is_closed = False
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self.arrived is not None:
            self.arrived.set()


def take_messages(stream: Stream, payload: bytes) -> None:
    """Add a payload to the stream, and hand each message that is now complete to the call."""
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
