"""Reads at one moment of the database, and up to a number of bytes, on each of the three Firestores."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import Carry, InProcessChannel
from firestore_emulator.rpc.service import Message
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore import protos
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find, fill
from firestore_outbox.firestore.streams import InThread, query_channel
from tests.conformance.backends import Backend, Place

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERYTHING = Find(collection="c", order_by=("n",))


async def test_a_query_sees_what_an_earlier_one_saw_at_its_moment(backend: Backend) -> None:
    gateway = Gateway(backend.client())
    await backend.seed({"c/1": {"n": 1}, "c/2": {"n": 2}})
    before = await gateway.find_at(EVERYTHING, None)
    await backend.seed({"c/1": {"n": 5}, "c/3": {"n": 3}})
    assert [one.data["n"] for one in before.found] == [1, 2]
    again = await gateway.find_at(EVERYTHING, before.moment)
    assert again == before
    assert [one.data["n"] for one in await gateway.find(EVERYTHING)] == [2, 3, 5]


async def test_a_query_that_finds_nothing_has_a_moment_too(backend: Backend) -> None:
    gateway = Gateway(backend.client())
    before = await gateway.find_at(EVERYTHING, None)
    await backend.seed({"c/1": {"n": 1}})
    assert before.found == (await gateway.find_at(EVERYTHING, before.moment)).found == []


async def test_a_moment_that_the_database_has_forgotten_is_an_outage_and_no_answer(inprocess_place: Place) -> None:
    """As in production. Google's emulator answers with what there was then, whenever that is."""
    backend = Backend(inprocess_place)
    gateway = Gateway(backend.client())
    await backend.seed({"c/1": {"n": 1}})
    moment = (await gateway.find_at(EVERYTHING, None)).moment - timedelta(hours=2)
    with pytest.raises(StoreUnavailable, match="could not read at"):
        await gateway.find_at(EVERYTHING, moment)


# --- large documents

TEN_LARGE: dict[str, Any] = {f"c/{number}": {"n": number, "text": "x" * 100_000} for number in range(10)}


async def test_a_query_stops_reading_after_its_bytes_and_says_that_more_may_follow(backend: Backend) -> None:
    await backend.seed(TEN_LARGE)
    await reads_three_and_then_the_rest(Gateway(backend.client()))


async def test_a_query_over_the_network_stops_reading_after_its_bytes(socket_backend: Backend) -> None:
    client = socket_backend.client()
    await socket_backend.seed(TEN_LARGE)
    with query_channel(client) as channel:
        await reads_three_and_then_the_rest(Gateway(client, queries=channel))


async def reads_three_and_then_the_rest(gateway: Gateway) -> None:
    first = await gateway.find_at(replace(EVERYTHING, most_bytes=250_000), None)
    assert [one.data["n"] for one in first.found] == [0, 1, 2]
    assert first.is_cut
    rest = await gateway.find_at(replace(EVERYTHING, start_after=(2,)), first.moment)
    assert [one.data["n"] for one in rest.found] == [3, 4, 5, 6, 7, 8, 9]
    assert not rest.is_cut


async def test_a_document_that_is_too_large_comes_without_its_lists_and_maps(backend: Backend) -> None:
    gateway = Gateway(backend.client())
    integers = [1] * 500  # 4 bytes each on the wire, 8 as Firestore counts them
    await backend.seed({"c/1": {"n": 1, "list": integers, "map": {"a": 1}}, "c/2": {"n": 2, "list": [1]}})
    large, small = await gateway.find(Find(collection="c", order_by=("n",), hollow_above=3_000))
    assert (large.is_hollow, large.data) == (True, {"n": 1, "list": None, "map": None})
    assert (small.is_hollow, small.data) == (False, {"n": 2, "list": [1]})
    assert large.size_bytes > 500 * 8
    assert await gateway.get_all(["c/1", "c/2"], hollow_above=3_000) == {"c/1": large, "c/2": small}
    assert (await gateway.get_all(["c/1"]))["c/1"].data["list"] == integers


async def test_answers_over_the_network_are_decoded_outside_of_the_event_loop(grpc_place: Place) -> None:
    """One account's documents must not stop the lanes of the others while they are decoded."""
    backend = Backend(grpc_place)
    await backend.seed(TEN_LARGE)
    request = protos.RunQueryRequest()
    fill(request, backend.root, EVERYTHING)
    with query_channel(backend.client()) as channel:
        read = InThread(
            channel.unary_stream(
                "/google.firestore.v1.Firestore/RunQuery",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=protos.RunQueryResponse.FromString,
            )
        )
        answers = await read(
            request,
            lambda answer: threading.current_thread(),
            most_bytes=None,
            within_seconds=10,
            metadata=[("authorization", "Bearer owner")],
        )
    assert len(answers.items) >= len(TEN_LARGE)
    assert threading.current_thread() not in answers.items


async def test_a_call_of_a_task_that_was_cancelled_is_not_tried_again() -> None:
    """gRPC answers it with CANCELLED, which is otherwise worth another try: Ctrl-C would be lost."""
    tries = 0

    async def cancelled(_: str, __: Carry) -> Message:
        nonlocal tries
        tries += 1
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        raise aio.AioRpcError(grpc.StatusCode.CANCELLED, aio.Metadata(), aio.Metadata(), details="by its caller")

    client = AsyncClient(project="demo-cancel", credentials=AnonymousCredentials())
    channel = InProcessChannel([FirestoreEmulator().service], wire=cancelled)
    transport = FirestoreGrpcAsyncIOTransport(channel=channel)
    client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
    call = asyncio.create_task(Gateway(client).get("a/1"))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert tries == 1
