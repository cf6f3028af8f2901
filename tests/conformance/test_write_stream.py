"""Write: commits one after another over one stream. Ours does not have it yet, and says so."""

from __future__ import annotations

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import REQUESTS, increment, plain, set_, shown, stamp

Request = REQUESTS["Write"]


async def test_each_message_is_a_commit(backend: Backend) -> None:
    if not backend.is_official:
        await _is_not_supported_yet(backend)
        return
    stream = backend.converse("Write")
    await stream.send(Request(database=backend.database))
    opened = await stream.read()
    assert opened is not None
    assert opened.stream_id
    assert opened.stream_token
    token = opened.stream_token
    for number in (1, 2):
        write = set_(backend.name("c/a"), mask=[], transforms=[increment("x", 1)])
        await stream.send(Request(stream_token=token, writes=[write]))
        answer = await stream.read()
        assert answer is not None
        assert plain(answer.write_results[0].transform_results[0]) == number
        assert stamp(answer.commit_time) == await backend.update_time("c/a")
        assert answer.stream_token
        assert answer.stream_token != token
        token = answer.stream_token
    await stream.finish()
    assert await stream.read() is None
    assert await backend.shown("c/a") == shown({"x": 2})


async def test_the_first_message_carries_no_writes(backend: Backend) -> None:
    if not backend.is_official:
        await _is_not_supported_yet(backend)
        return
    stream = backend.converse("Write")
    await stream.send(Request(database=backend.database, writes=[set_(backend.name("c/a"), {})]))
    with refused("INVALID_ARGUMENT"):
        await stream.read()
    assert not await backend.exists("c/a")


async def test_a_refused_write_ends_the_stream(backend: Backend) -> None:
    if not backend.is_official:
        await _is_not_supported_yet(backend)
        return
    stream = backend.converse("Write")
    await stream.send(Request(database=backend.database))
    opened = await stream.read()
    assert opened is not None
    await stream.send(Request(stream_token=opened.stream_token, writes=[set_(backend.name("c/a"), {}, exists=True)]))
    with refused("NOT_FOUND"):
        await stream.read()


async def _is_not_supported_yet(backend: Backend) -> None:
    stream = backend.converse("Write")
    await stream.send(Request(database=backend.database))
    with refused("UNIMPLEMENTED") as refusals:
        await stream.read()
    assert "Write" in refusals[0].message
