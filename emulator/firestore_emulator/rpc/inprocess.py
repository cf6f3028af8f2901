"""A `grpc.aio.Channel` with no network in it: the real client libraries on the engine, on any event loop.

Requests and responses still pass through the client's own serializers, so both sides see what a socket would
have carried, and no two sides share a mutable message. Each call runs in a task of its own, as it would in a server.

`wire` is the network between the two. It is given each call's path and a function that carries it to the service,
and may delay it, refuse it, lose the answer, or count it. Without one, every call arrives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

import grpc
from grpc import aio

from firestore_emulator.rpc.service import (
    BidiStream,
    Call,
    Message,
    Method,
    ServerStream,
    Service,
    Unary,
    refusal_of,
)

Carry = Callable[[], Awaitable[Message]]
Wire = Callable[[str, Carry], Awaitable[Message]]

Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]


async def _perfect_wire(path: str, carry: Carry) -> Message:
    return await carry()


class InProcessChannel(aio.Channel):
    """The services as a channel; hand it to a generated transport (`...GrpcAsyncIOTransport(channel=channel)`)."""

    def __init__(self, services: Iterable[Service], *, wire: Wire = _perfect_wire) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.paths())
        self._wire = wire
        # The generated transports append their logging interceptor here; there is nothing for it to intercept.
        self._unary_unary_interceptors: list[Any] = []

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer | None = None,
        response_deserializer: Deserializer | None = None,
        _registered_method: bool | None = False,
    ) -> aio.UnaryUnaryMultiCallable:
        return _UnaryUnary(self._find(method), method, request_serializer, response_deserializer, self._wire)

    def unary_stream(
        self,
        method: str,
        request_serializer: Serializer | None = None,
        response_deserializer: Deserializer | None = None,
        _registered_method: bool | None = False,
    ) -> aio.UnaryStreamMultiCallable:
        return _UnaryStream(self._find(method), method, request_serializer, response_deserializer, self._wire)

    def stream_stream(
        self,
        method: str,
        request_serializer: Serializer | None = None,
        response_deserializer: Deserializer | None = None,
        _registered_method: bool | None = False,
    ) -> aio.StreamStreamMultiCallable:
        return _StreamStream(self._find(method), method, request_serializer, response_deserializer, self._wire)

    def stream_unary(self, *args: Any, **kwargs: Any) -> aio.StreamUnaryMultiCallable:
        raise NotImplementedError("neither Firestore nor Cloud Tasks has a client-streaming method")

    def _find(self, path: str) -> Method | None:
        return self._methods.get(path)

    async def close(self, grace: float | None = None) -> None:
        return None

    async def __aenter__(self) -> InProcessChannel:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await asyncio.get_running_loop().create_future()

    async def channel_ready(self) -> None:
        return None


class _Bound:
    """What the three kinds of call share: the method found, and the client's way of writing and reading messages."""

    def __init__(
        self,
        method: Method | None,
        path: str,
        serialize: Serializer | None,
        deserialize: Deserializer | None,
        wire: Wire,
    ) -> None:
        self.method = method
        self.path = path
        self.wire = wire
        self._serialize = serialize or _as_bytes
        self._deserialize = deserialize or _as_bytes

    def request(self, message: Any) -> Message:
        if self.method is None:
            raise _status(grpc.StatusCode.UNIMPLEMENTED, f"Method not found: {self.path}")
        return self.method.request.FromString(self._serialize(message))

    def response(self, message: Message) -> Any:
        return self._deserialize(message.SerializeToString())


class _UnaryUnary(_Bound, aio.UnaryUnaryMultiCallable):
    def __call__(self, request: Any, *, metadata: Any = None, timeout: float | None = None, **_: Any) -> Any:
        async def run() -> Any:
            message = self.request(request)
            method = self.method
            assert isinstance(method, Unary)

            async def carry() -> Message:
                return await method.handler(message, _call(metadata))

            return self.response(await _translated(self.path, self.wire(self.path, carry)))

        return _Outcome(asyncio.ensure_future(_within(timeout, run)))


class _UnaryStream(_Bound, aio.UnaryStreamMultiCallable):
    def __call__(self, request: Any, *, metadata: Any = None, timeout: float | None = None, **_: Any) -> Any:
        async def responses() -> AsyncIterator[Any]:
            message = self.request(request)
            method = self.method
            assert isinstance(method, ServerStream)

            async def carry() -> Message:
                # The wire carries the stream whole: what a lost answer loses is all of it.
                return [item async for item in method.handler(message, _call(metadata))]

            for item in await _translated(self.path, self.wire(self.path, carry)):
                yield self.response(item)

        return _Stream(responses())


class _StreamStream(_Bound, aio.StreamStreamMultiCallable):
    def __call__(self, request_iterator: Any = None, *, metadata: Any = None, **_: Any) -> Any:
        inbox: asyncio.Queue[Any] = asyncio.Queue()

        async def requests() -> AsyncIterator[Message]:
            while (item := await inbox.get()) is not _END:
                yield self.request(item)

        async def feed() -> None:
            if hasattr(request_iterator, "__aiter__"):
                async for item in request_iterator:
                    inbox.put_nowait(item)
            else:
                for item in request_iterator:
                    inbox.put_nowait(item)
            inbox.put_nowait(_END)

        async def responses() -> AsyncIterator[Any]:
            if self.method is None:
                raise _status(grpc.StatusCode.UNIMPLEMENTED, f"Method not found: {self.path}")
            method = self.method
            assert isinstance(method, BidiStream)
            feeder = asyncio.ensure_future(feed()) if request_iterator is not None else None
            stream = aiter(method.handler(requests(), _call(metadata)))
            try:
                while True:
                    try:
                        item = await _translated(self.path, anext(stream))
                    except StopAsyncIteration:
                        return
                    yield self.response(item)
            finally:
                if feeder is not None:
                    feeder.cancel()

        return _Stream(responses(), inbox)


_END = object()


class _Outcome(aio.UnaryUnaryCall):
    """A call under way, as the client library expects to hold one."""

    def __init__(self, task: asyncio.Future[Any]) -> None:
        self._task = task

    def __await__(self) -> Any:
        return self._task.__await__()

    def cancelled(self) -> bool:
        return self._task.cancelled()

    def done(self) -> bool:
        return self._task.done()

    def cancel(self) -> bool:
        return self._task.cancel()

    def time_remaining(self) -> float | None:
        return None

    def add_done_callback(self, callback: Any) -> None:
        self._task.add_done_callback(lambda _: callback(self))

    async def initial_metadata(self) -> aio.Metadata:
        return aio.Metadata()

    async def trailing_metadata(self) -> aio.Metadata:
        return aio.Metadata()

    async def code(self) -> grpc.StatusCode:
        await asyncio.wait([self._task])
        error = self._task.exception()
        return error.code() if isinstance(error, aio.AioRpcError) else grpc.StatusCode.OK

    async def details(self) -> str:
        return ""

    async def wait_for_connection(self) -> None:
        return None


class _Stream(aio.StreamStreamCall, aio.UnaryStreamCall):
    """A stream under way. It is lazy: nothing reaches the service before the first read."""

    def __init__(self, responses: AsyncIterator[Any], inbox: asyncio.Queue[Any] | None = None) -> None:
        self._responses = responses
        self._inbox = inbox
        self._done = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._responses

    async def read(self) -> Any:
        try:
            return await anext(self._responses)
        except StopAsyncIteration:
            self._done = True
            return aio.EOF

    async def write(self, request: Any) -> None:
        assert self._inbox is not None, "this call has no request stream"
        self._inbox.put_nowait(request)

    async def done_writing(self) -> None:
        assert self._inbox is not None, "this call has no request stream"
        self._inbox.put_nowait(_END)

    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return self._done

    def cancel(self) -> bool:
        self._done = True
        return True

    def time_remaining(self) -> float | None:
        return None

    def add_done_callback(self, callback: Any) -> None:
        return None

    async def initial_metadata(self) -> aio.Metadata:
        return aio.Metadata()

    async def trailing_metadata(self) -> aio.Metadata:
        return aio.Metadata()

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    async def details(self) -> str:
        return ""

    async def wait_for_connection(self) -> None:
        return None


async def _translated(path: str, work: Awaitable[Message]) -> Message:
    """A handler's refusal, as the exception a real channel raises."""
    try:
        return await work
    except (aio.AioRpcError, StopAsyncIteration):
        raise
    except Exception as error:  # noqa: BLE001 - the border: whatever a handler raises becomes a status
        refusal = refusal_of(error, path)
        raise _status(refusal.code, refusal.message) from None


async def _within(seconds: float | None, work: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except TimeoutError:
        raise _status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None


def _status(code: grpc.StatusCode, message: str) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=message)


def _call(metadata: Sequence[tuple[str, str]] | None) -> Call:
    return Call(metadata={key: value for key, value in metadata or () if isinstance(value, str)})


def _as_bytes(value: Any) -> Any:
    return value
