"""Write: commits one after another over one stream, as the web and mobile clients send them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conformance.backends import Backend, Conversation, refused
from tests.conformance.wire import (
    REQUESTS,
    Proto,
    Stamp,
    Write,
    delete,
    fields_of,
    increment,
    plain,
    server_time,
    set_,
    shown,
    stamp,
    verify,
)

Request = REQUESTS["Write"]


class Writer:
    """A stream past its first message, which sends the last token it was given, as a client does."""

    def __init__(self, conversation: Conversation, opened: Proto) -> None:
        self._conversation = conversation
        self.id: str = opened.stream_id
        self.token: bytes = opened.stream_token

    async def write(self, *writes: Proto, **options: object) -> Proto:
        await self._conversation.send(Request(**{"stream_token": self.token, **options}, writes=writes))
        answer = await self._conversation.read()
        assert answer is not None, "the stream ended"
        assert answer.stream_token != self.token
        self.token = answer.stream_token
        return answer

    async def ended(self) -> bool:
        return await self._conversation.read() is None

    async def finish(self) -> None:
        await self._conversation.finish()


@asynccontextmanager
async def writing(backend: Backend) -> AsyncIterator[Writer]:
    conversation = backend.converse("Write")
    try:
        await conversation.send(Request(database=backend.database))
        opened = await conversation.read()
        assert opened is not None
        yield Writer(conversation, opened)
    finally:
        conversation.cancel()


# --- a stream's life


async def test_the_first_message_is_answered_with_an_id_and_a_token(backend: Backend) -> None:
    async with writing(backend) as one, writing(backend) as other:
        assert one.id
        assert one.token
        assert one.id != other.id


async def test_each_message_is_a_commit(backend: Backend) -> None:
    async with writing(backend) as writer:
        for number in (1, 2):
            answer = await writer.write(set_(backend.name("c/a"), mask=[], transforms=[increment("x", 1)]))
            assert not answer.stream_id
            assert plain(answer.write_results[0].transform_results[0]) == number
            assert stamp(answer.commit_time) == await backend.update_time("c/a")
        await writer.finish()
        assert await writer.ended()
    assert await backend.shown("c/a") == shown({"x": 2})


async def test_messages_sent_ahead_are_committed_in_order(backend: Backend) -> None:
    conversation = backend.converse("Write")
    await conversation.send(Request(database=backend.database))
    for number in range(5):
        await conversation.send(Request(writes=[set_(backend.name("c/a"), {"x": number})]))
    await conversation.finish()
    answers = [await conversation.read() for _ in range(7)]
    assert answers[-1] is None
    commits = [stamp(answer.commit_time) for answer in answers[1:-1] if answer is not None]
    assert commits == sorted(set(commits))
    assert await backend.fields("c/a") == {"x": 4}


async def test_a_message_without_writes_is_the_last(backend: Backend) -> None:
    async with writing(backend) as writer:
        await writer.write(set_(backend.name("c/a"), {}))
        answer = await writer.write()
        assert not answer.write_results
        assert not answer.HasField("commit_time")
        assert await writer.ended()


async def test_a_stream_without_a_message_ends_in_peace(backend: Backend) -> None:
    conversation = backend.converse("Write")
    await conversation.finish()
    assert await conversation.read() is None


# --- what a commit may hold


async def test_the_writes_of_a_message_are_one_commit(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 1}})
    async with writing(backend) as writer:
        answer = await writer.write(
            set_(backend.name("c/a"), {"y": 2}, mask=["y"], transforms=[server_time("at"), increment("x", 4)]),
            delete(backend.name("c/b")),
            set_(backend.name("c/n"), {"x": 3}, exists=False),
            set_(backend.name("c/n"), {"x": 4}),
        )
    first, second, third, fourth = answer.write_results
    assert [plain(result) for result in first.transform_results][1:] == [5]
    assert (
        stamp(first.update_time) == stamp(third.update_time) == stamp(fourth.update_time) == stamp(answer.commit_time)
    )
    assert not second.HasField("update_time")
    assert not await backend.exists("c/b")
    assert await backend.fields("c/n") == {"x": 4}
    changed = fields_of(await backend.get("c/a"))
    assert (changed["x"], changed["y"], type(changed["at"])) == (5, 2, Stamp)


async def test_a_write_that_changes_nothing_keeps_its_update_time(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    before = await backend.update_time("c/a")
    async with writing(backend) as writer:
        answer = await writer.write(set_(backend.name("c/a"), {"x": 1}))
    assert stamp(answer.write_results[0].update_time) == before
    assert stamp(answer.commit_time) > before


async def test_preconditions_that_hold_are_met(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with writing(backend) as writer:
        await writer.write(
            set_(backend.name("c/a"), {"x": 2}, update_time=await backend.update_time("c/a")),
            set_(backend.name("c/b"), {}, exists=False),
        )
        await writer.write(delete(backend.name("c/a"), exists=True))
    assert not await backend.exists("c/a")
    assert await backend.exists("c/b")


# --- verify


async def test_verifying_writes_nothing(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    before = await backend.update_time("c/a")
    async with writing(backend) as writer:
        answer = await writer.write(verify(backend.name("c/a"), exists=True))
        assert stamp(answer.write_results[0].update_time) == before
        await writer.write(verify(backend.name("c/a"), update_time=before), set_(backend.name("c/b"), {"x": 1}))
        await writer.write(verify(backend.name("c/none"), exists=False))
    assert await backend.update_time("c/a") == before
    assert await backend.exists("c/b")
    assert not await backend.exists("c/none")


async def test_a_commit_falls_with_what_it_verifies(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    held = set_(backend.name("c/n"), {})
    for broken, code in (
        (verify(backend.name("c/a"), exists=False), "ALREADY_EXISTS"),
        (verify(backend.name("c/none"), exists=True), "NOT_FOUND"),
        (verify(backend.name("c/a"), update_time=Stamp(1)), "FAILED_PRECONDITION"),
        (verify(backend.name("c/a")), "INVALID_ARGUMENT"),
        (verify("c/a", exists=True), "INVALID_ARGUMENT"),
    ):
        with refused(code):
            await backend.commit(held, broken)
        async with writing(backend) as writer:
            with refused(code):
                await writer.write(held, broken)
    assert not await backend.exists("c/n")


async def test_a_document_is_not_verified_and_written_in_one_commit(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    name = backend.name("c/a")
    for writes in (
        [verify(name, exists=True), set_(name, {"x": 2})],
        [set_(name, {"x": 2}), verify(name, exists=True)],
        [verify(name, exists=True), verify(name, exists=True)],
    ):
        with refused("INVALID_ARGUMENT"):
            await backend.commit(*writes)
    masked = verify(name, exists=True)
    masked.update_mask.SetInParent()
    with refused("INVALID_ARGUMENT"):
        await backend.commit(masked)
    assert await backend.fields("c/a") == {"x": 1}


# --- refusals end the stream


async def test_a_refused_commit_ends_the_stream_with_its_code_and_leaves_nothing(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    for broken, code in (
        (set_(backend.name("c/none"), {}, exists=True), "NOT_FOUND"),
        (delete(backend.name("c/none"), exists=True), "NOT_FOUND"),
        (set_(backend.name("c/a"), {}, exists=False), "ALREADY_EXISTS"),
        (set_(backend.name("c/a"), {}, update_time=Stamp(1)), "FAILED_PRECONDITION"),
        (Write(), "INVALID_ARGUMENT"),
        (set_(backend.name("c"), {}), "INVALID_ARGUMENT"),
    ):
        async with writing(backend) as writer:
            with refused(code):
                await writer.write(set_(backend.name("c/n"), {}), broken)
    assert not await backend.exists("c/n")


async def test_what_was_committed_before_a_refusal_stays(backend: Backend) -> None:
    async with writing(backend) as writer:
        await writer.write(set_(backend.name("c/a"), {"x": 1}))
        with refused("ALREADY_EXISTS"):
            await writer.write(set_(backend.name("c/a"), {}, exists=False))
    assert await backend.fields("c/a") == {"x": 1}


async def test_a_write_of_what_a_transaction_has_read_is_aborted(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin()
    await backend.get("c/a", transaction=transaction)
    async with writing(backend) as writer:
        with refused("ABORTED"):
            await writer.write(set_(backend.name("c/a"), {"x": 2}))
    await backend.rollback(transaction)
    assert await backend.fields("c/a") == {"x": 1}


async def test_the_first_message_carries_no_writes(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await _opening(backend, database=backend.database, writes=[set_(backend.name("c/a"), {})])
    assert not await backend.exists("c/a")


async def test_the_first_message_names_the_database(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await _opening(backend)


@pytest.mark.parametrize(
    "resumed", [{"stream_id": "0"}, {"stream_token": b"0"}, {"stream_id": "0", "stream_token": b"0"}]
)
async def test_a_stream_cannot_be_resumed(backend: Backend, resumed: dict[str, object]) -> None:
    with refused("INVALID_ARGUMENT"):
        await _opening(backend, database=backend.database, **resumed)


async def test_a_later_message_names_no_stream(backend: Backend) -> None:
    async with writing(backend) as writer:
        with refused("INVALID_ARGUMENT"):
            await writer.write(set_(backend.name("c/a"), {}), stream_id=writer.id)
    assert not await backend.exists("c/a")


async def test_a_later_message_may_name_the_database_and_no_other(backend: Backend) -> None:
    async with writing(backend) as writer:
        await writer.write(set_(backend.name("c/a"), {}), database=backend.database)
        with refused("INVALID_ARGUMENT"):
            await writer.write(set_(backend.name("c/b"), {}), database="projects/other/databases/(default)")
    assert await backend.exists("c/a")
    assert not await backend.exists("c/b")


@pytest.mark.parametrize("token", [b"", b"no token of this stream"])
async def test_whatever_token_a_later_message_carries_is_taken(backend: Backend, token: bytes) -> None:
    async with writing(backend) as writer:
        await writer.write(set_(backend.name("c/a"), {"x": 1}))
        await writer.write(set_(backend.name("c/a"), {"x": 2}), stream_token=token)
    assert await backend.fields("c/a") == {"x": 2}


# --- where production and Google's emulator differ, and ours follows production


async def test_a_stream_on_a_database_that_does_not_exist(backend: Backend) -> None:
    database = backend.database.replace("(default)", "never-made")
    if backend.is_official:
        assert (await _opening(backend, database=database)).stream_id  # made by its first use
    else:
        with refused("NOT_FOUND"):
            await _opening(backend, database=database)


async def test_a_stream_on_what_is_no_database(backend: Backend) -> None:
    if backend.is_official:
        assert (await _opening(backend, database="nothing")).stream_id
    else:
        with refused("INVALID_ARGUMENT"):
            await _opening(backend, database="nothing")


async def test_a_write_to_another_databases_document(backend: Backend) -> None:
    write = set_(f"projects/{backend.project}-other/databases/(default)/documents/c/a", {"x": 1})
    async with writing(backend) as writer:
        if backend.is_official:
            await writer.write(write)
        else:
            with refused("INVALID_ARGUMENT"):
                await writer.write(write)


async def _opening(backend: Backend, **first: object) -> Proto:
    """The answer to this first message."""
    conversation = backend.converse("Write")
    try:
        await conversation.send(Request(**first))
        return await conversation.read()
    finally:
        conversation.cancel()
