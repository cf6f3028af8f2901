"""Whatever is sent, the answer is a status that blames the request, and the server goes on.

INTERNAL and UNKNOWN mean that the emulator itself failed. Neither is ever an answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from random import Random

import pytest
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st

from firestore_emulator import virtual_time
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.server import Server
from firestore_emulator.transactions import transactions
from tests.conformance.backends import SERVICE, Backend, Place, Refused, refused
from tests.conformance.wire import (
    CONVERSATIONS,
    REQUESTS,
    SERVER_STREAMS,
    Geo,
    Plain,
    Proto,
    Ref,
    Stamp,
    Unset,
    Value,
    increment,
    query,
    set_,
    transform,
    where,
)
from tests.emulator.firestore import fuzz
from tests.emulator.firestore.support import START, examples
from tests.emulator.firestore.world import World, in_virtual_time
from tests.patience import PATIENCE_SECONDS

OUR_FAULT = {"INTERNAL", "UNKNOWN"}


async def status_of(channel: aio.Channel, method: str, data: bytes) -> str:
    """The status that raw bytes are answered with."""
    path = SERVICE + method
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            if method in CONVERSATIONS:
                call = channel.stream_stream(path)()
                # A call may have ended before all of it was written: what counts is the status it ended with.
                with suppress(aio.AioRpcError):
                    await call.write(data)
                    await call.done_writing()
                while await call.read() is not aio.EOF:
                    pass
            elif method in SERVER_STREAMS:
                async for _ in channel.unary_stream(path)(data):
                    pass
            else:
                await channel.unary_unary(path)(data)
    except aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def still_answers(backend: Backend) -> None:
    """Every collection that the random requests know can still be read whole, and written."""
    await backend.commit(set_(backend.name("c/after"), {"a": 1}), set_(backend.name("d/after"), {"a": 1}))
    for collection in ("c", "d"):
        assert f"{collection}/after" in await backend.paths(query(collection))
        assert f"{collection}/after" in await backend.paths(query(collection, order=["a"]))


# --- without a socket


randomness = st.integers(0, 2**64 - 1).map(Random)
"""One seed an example: requests are large, and drawing each field one by one would take longer than asking."""


@given(randomness)
@examples(100)
def test_random_requests_are_answered_with_a_status_that_blames_the_request(rng: Random) -> None:
    async def main() -> None:
        world = World()
        for _ in range(40):
            method, request = fuzz.request(rng)
            answered = await status_of(world.backend.channel, method, request.SerializeToString())
            assert answered not in OUR_FAULT, f"{method} answered {answered} to {request}"
        await asyncio.sleep(300)  # open transactions expire
        await still_answers(world.backend)
        await world.emulator.stop()

    virtual_time.run(main(), seed=1, start=START)


def test_of_the_random_requests_to_each_call_some_are_accepted_and_some_refused() -> None:
    """Else the test above would show little."""
    seen: Counter[str] = Counter()

    async def main() -> None:
        world = World()
        rng = Random(7)
        for _ in range(1500):
            method, request = fuzz.request(rng)
            answered = await status_of(world.backend.channel, method, request.SerializeToString())
            seen[f"{method} {answered}"] += 1
        await world.emulator.stop()

    virtual_time.run(main(), seed=1, start=START)
    accepted = {one.split()[0] for one in seen if one.endswith(" OK")}
    refused_calls = {one.split()[0] for one in seen if not one.endswith(" OK")}
    assert accepted == set(REQUESTS), seen
    assert refused_calls == set(REQUESTS), seen


# --- over a socket


@dataclass
class Socket:
    runner: asyncio.Runner
    backend: Backend
    address: str


@pytest.fixture
def socket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Socket]:
    """A real server; a call that waits for a lock gives up at once, since here no call will release one."""
    monkeypatch.setattr(transactions, "LOCK_WAIT_SECONDS", 0.0)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        backend = runner.run(serve(stack))
        assert backend.address is not None
        yield Socket(runner, backend, backend.address)
        runner.run(stack.aclose())


async def serve(stack: AsyncExitStack) -> Backend:
    emulator = FirestoreEmulator()
    await emulator.start()
    stack.push_async_callback(emulator.stop)
    server = await Server.start(emulator.service, http=emulator.http_app)
    stack.push_async_callback(server.stop, grace_seconds=0)
    channel = await stack.enter_async_context(aio.insecure_channel(server.address))
    return Backend(Place("grpc", channel, server.address), project="p")


def test_random_and_broken_bytes_over_a_socket_are_answered_and_the_server_goes_on(socket: Socket) -> None:
    seen: Counter[str] = Counter()

    @given(randomness)
    @examples(25)
    def ask(rng: Random) -> None:
        async def main() -> None:
            for _ in range(15):
                method, request = fuzz.request(rng) if rng.random() < 0.5 else fuzz.broken_bytes(rng)
                data = request if isinstance(request, bytes) else request.SerializeToString()
                answered = await status_of(socket.backend.channel, method, data)
                assert answered not in OUR_FAULT, f"{method} answered {answered} to {data!r}"
                seen[answered] += 1

        socket.runner.run(main())

    ask()
    assert {"OK", "INVALID_ARGUMENT"} <= set(seen)
    fresh = Backend(Place("grpc", socket.backend.channel, socket.address))
    socket.runner.run(still_answers(fresh))


def test_bytes_that_are_no_message_are_an_invalid_argument_for_every_call(socket: Socket) -> None:
    for method in REQUESTS:
        assert socket.runner.run(status_of(socket.backend.channel, method, b"\xff\xff\xff")) == "INVALID_ARGUMENT", (
            method
        )


def test_a_call_that_does_not_exist_is_unimplemented(socket: Socket) -> None:
    assert socket.runner.run(status_of(socket.backend.channel, "Guess", b"")) == "UNIMPLEMENTED"


# --- what random requests have found, and what they would find rarely


def operator(kind: str) -> Proto:
    asked = query("c", where("a", "is-null") if kind == "unary_filter" else where("a", "==", 1))
    if kind == "composite_filter":
        asked.where.composite_filter.filters.add().CopyFrom(where("a", "==", 1))
    getattr(asked.where, kind).op = 99
    return asked


@in_virtual_time()
async def test_an_operator_of_a_later_version_of_the_api_is_refused(world: World) -> None:
    for kind in ("field_filter", "unary_filter", "composite_filter"):
        with refused("INVALID_ARGUMENT"):
            await world.backend.run(operator(kind))


UNSTORABLE: dict[str, Plain] = {
    "negative nanoseconds": Stamp(0, -1),
    "too many nanoseconds": Stamp(0, 10**9),
    "a year past 9999": Stamp(2**62),
    "a latitude of 200": Geo(200.0, 0.0),
    "a latitude that is not a number": Geo(float("nan"), 0.0),
    "a name that is none": Ref("nonsense"),
    "a reserved key": {"__x__": 1},
    "a vector of no array": {"__type__": "__vector__", "value": 3},
    "no type": Unset(),
}


@pytest.mark.parametrize("case", UNSTORABLE)
def test_a_value_that_no_document_may_hold_is_refused_wherever_it_stands(case: str) -> None:
    async def main() -> None:
        world = World()
        operand = UNSTORABLE[case]
        backend = world.backend
        asked = [query("c", where("a", op, operand)) for op in ("==", "<", "!=", "array-contains")]
        asked += [query("c", where("a", op, [operand])) for op in ("in", "not-in", "array-contains-any")]
        cut = query("c", order=["a"])
        cut.start_at.values.add().CopyFrom(where("a", "==", operand).field_filter.value)
        for structured in [*asked, cut]:
            with refused("INVALID_ARGUMENT"):
                await backend.run(structured)
        for data in ({"a": operand}, {"a": [operand]}, {"a": {"k": operand}}):
            with refused("INVALID_ARGUMENT"):
                await backend.seed({"c/1": data})
        assert not await backend.exists("c/1")

    virtual_time.run(main(), seed=1, start=START)


@in_virtual_time()
async def test_values_of_the_pipeline_language_are_refused_in_documents_and_filters(world: World) -> None:
    for kind in ("field_reference_value", "variable_reference_value", "function_value", "pipeline_value"):
        value = Value()
        if kind.endswith("reference_value"):
            setattr(value, kind, "a")
        else:
            getattr(value, kind).SetInParent()
        asked = query("c", where("a", "==", 1))
        asked.where.field_filter.value.CopyFrom(value)
        with refused("INVALID_ARGUMENT"):
            await world.backend.run(asked)
        stored = set_(world.backend.name("c/1"), {"a": 1})
        stored.update.fields["a"].CopyFrom(value)
        with refused("INVALID_ARGUMENT"):
            await world.backend.commit(stored)


@in_virtual_time()
async def test_no_write_nests_a_document_so_deep_that_it_could_not_be_read_again(world: World) -> None:
    backend = world.backend
    accepted = 0
    for depth in range(15, 45):
        path = ".".join("a" * depth)
        for write in (
            transform(backend.name("c/deep"), increment(path, 1)),
            set_(backend.name("c/deep"), {}, mask=[path]),
            set_(backend.name("c/deep"), {}, transforms=[increment(path, 1)]),
        ):
            try:
                await backend.commit(write)
                accepted += 1
            except Refused as refusal:
                assert depth > 20
                if refusal.code != "INVALID_ARGUMENT":
                    raise
            await backend.paths(query("c"))
    assert accepted >= 18
    assert await backend.exists("c/deep")


@in_virtual_time()
async def test_two_names_are_never_one_document(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/__id3__": {"n": 3}})
    for same_number in ("__id03__", "__id-0__", "__id0__", "__id٣__", "__id+3__", "__id99999999999999999999__"):
        with refused("INVALID_ARGUMENT"):
            await backend.seed({f"c/{same_number}": {"n": 0}})
    assert await backend.fields("c/__id3__") == {"n": 3}


@in_virtual_time()
async def test_a_page_token_that_is_none_is_refused_or_gives_a_page_and_never_fails(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {}, "d/1": {}})
    for token in ("_w==", "AAAA", "////", "_____w==", "AmEAAQ=="):
        for method, options in (
            ("ListCollectionIds", {}),
            ("ListDocuments", {"collection_id": "c"}),
            ("ListDocuments", {"collection_id": "c", "show_missing": True}),
        ):
            request = REQUESTS[method](parent=backend.root, page_token=token, **options)
            try:
                await backend.call(method, request)
            except Refused as refusal:
                if refusal.code != "INVALID_ARGUMENT":
                    raise


@in_virtual_time()
async def test_pages_go_on_behind_a_document_that_is_gone_by_then(world: World) -> None:
    backend = world.backend
    await backend.seed({f"c/{number}": {} for number in range(6)})
    for options in ({}, {"show_missing": True}):
        asked = REQUESTS["ListDocuments"](parent=backend.root, collection_id="c", page_size=2, **options)
        first = await backend.call("ListDocuments", asked)
        gone = backend.path(first.documents[-1].name)
        await backend.commit(delete_of(backend, gone))
        asked.page_token = first.next_page_token
        second = await backend.call("ListDocuments", asked)
        assert backend.path(second.documents[0].name) > gone
        assert len(second.documents) == 2


def delete_of(backend: Backend, path: str) -> Proto:
    return REQUESTS["BatchWrite"](writes=[{"delete": backend.name(path)}]).writes[0]
