"""What a call does between its request and its last frame, one function for each form of call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.message import DecodeError

from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.rpc.frames import message
from firestore_emulator.rpc.http2_sender import Sender
from firestore_emulator.rpc.http2_stream import Stream
from firestore_emulator.rpc.service import BidiStream, Message, Method, ServerStream, Unary, refusal_of

WRITE_CHUNK = 64 * 1024


async def answer(sender: Sender, stream: Stream, method: Unary) -> None:
    try:
        response = await method.handler(_parsed(method, stream.messages[0]), stream.call)
    except Exception as error:  # noqa: BLE001 - the boundary: what a handler raises becomes a status
        sender.refuse(stream, refusal_of(error, stream.path))
        return
    data: bytes = response.SerializeToString()
    await sender.write(stream, message(data))
    sender.finish(stream)


async def stream_out(sender: Sender, stream: Stream, method: ServerStream) -> None:
    chunk: list[bytes] = []
    size = 0
    try:
        async for item in method.handler(_parsed(method, stream.messages[0]), stream.call):
            data = message(item.SerializeToString())
            chunk.append(data)
            size += len(data)
            if size > WRITE_CHUNK:
                await sender.write(stream, b"".join(chunk))
                chunk, size = [], 0
    except Exception as error:  # noqa: BLE001 - the boundary, as above
        await sender.write(stream, b"".join(chunk))
        sender.refuse(stream, refusal_of(error, stream.path))
        return
    await sender.write(stream, b"".join(chunk))
    sender.finish(stream)


async def converse(sender: Sender, stream: Stream, method: BidiStream) -> None:
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
        sender.head(stream)  # a client may wait for these before it asks for anything
        async for item in method.handler(requests(), stream.call):
            await sender.write(stream, message(item.SerializeToString()))
    except Exception as error:  # noqa: BLE001 - the boundary, as above
        sender.refuse(stream, refusal_of(error, stream.path))
        return
    sender.finish(stream)


def _parsed(method: Method, data: bytes) -> Message:
    try:
        return method.request.FromString(data)
    except DecodeError:
        raise invalid_argument("The request is not a message of this method.") from None
