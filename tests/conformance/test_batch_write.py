"""BatchWrite: each write on its own, with a status of its own."""

from __future__ import annotations

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, Proto, Stamp, Write, delete, increment, plain, set_, shown


async def batch_write(backend: Backend, *writes: Proto) -> Proto:
    return await backend.call("BatchWrite", REQUESTS["BatchWrite"](database=backend.database, writes=writes))


async def test_each_write_succeeds_or_fails_by_itself(backend: Backend) -> None:
    await backend.seed({"c/old": {"x": 1}})
    answer = await batch_write(
        backend,
        set_(backend.name("c/a"), {"x": 1}),
        set_(backend.name("c/none"), {}, exists=True),
        set_(backend.name("c/old"), {}, exists=False),
        delete(backend.name("c/missing")),
        set_(backend.name("c/gone"), {}, update_time=Stamp(5)),
        set_(backend.name("c/b"), {}, mask=[], transforms=[increment("n", 2)]),
    )
    assert [status.code for status in answer.status] == [0, 5, 6, 0, 9, 0]
    assert [result.HasField("update_time") for result in answer.write_results] == [
        True,
        False,
        False,
        False,
        False,
        True,
    ]
    assert plain(answer.write_results[5].transform_results[0]) == 2
    assert await backend.shown("c/a") == shown({"x": 1})
    assert await backend.shown("c/old") == shown({"x": 1})
    assert not await backend.exists("c/none")
    assert all(status.message for status in answer.status if status.code)


async def test_a_batch_of_nothing_is_fine(backend: Backend) -> None:
    answer = await batch_write(backend)
    assert len(answer.status) == len(answer.write_results) == 0


async def test_one_document_is_written_once_in_a_batch(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await batch_write(backend, set_(backend.name("c/a"), {"x": 1}), delete(backend.name("c/a")))
    assert not await backend.exists("c/a")


@pytest.mark.parametrize(
    "make",
    [
        lambda b: Write(),
        lambda b: delete("x"),
        lambda b: delete(b.name("c")),
        lambda b: delete(b.name("c/__x__")),
        lambda b: set_(b.name("c/b"), {"x": [[1]]}),
        lambda b: set_(b.name("c/b"), {"__x__": 1}),
        lambda b: set_(b.name("c/b"), {}, mask=["a..b"]),
        lambda b: set_(b.name("c/b"), {}, transforms=[increment("x", "1")]),
        lambda b: set_(b.name("c/b"), {}, update_time=Stamp(1, 1)),
        lambda b: set_(b.name("c/" + "b" * 1501), {}),
    ],
    ids=["empty", "no path", "collection", "reserved", "array", "field", "mask", "transform", "time", "long id"],
)
async def test_a_malformed_write_refuses_the_whole_batch(backend: Backend, make: object) -> None:
    assert callable(make)
    with refused("INVALID_ARGUMENT"):
        await batch_write(backend, set_(backend.name("c/a"), {"x": 1}), make(backend))
    assert not await backend.exists("c/a")
