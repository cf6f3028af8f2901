"""A migration over a collection: paged, resumable, safe beside other writers, and without a trace on a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.operations.migrations.apply import Applying
from firestore_outbox.operations.migrations.decision import Change, Decision, Document, Keep, Migration, Undecided
from firestore_outbox.providers.credentials import FixedCredentials
from tests.conformance.backends import Backend

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def doubled(document: Document) -> Decision:
    if document.fields.get("odd"):
        return Undecided("it is odd")
    return Keep() if "twice" in document.fields else Change({"twice": 2 * document.fields["n"]})


def halved(document: Document) -> Decision:
    return Change({"twice": DELETE}) if "twice" in document.fields else Keep()


DOUBLE = Migration(name="double", what="doubles n", collection="c", forward=doubled, back=halved)
ALL: Mapping[str, Mapping[str, Any]] = {f"c/{n:02d}": {"n": n} for n in range(10)}


def applying(backend: Backend, **secrets: Mapping[str, str]) -> Applying:
    return Applying(gateway=Gateway(backend.client()), credentials=FixedCredentials(secrets), clock=lambda: NOW, page=3)


async def test_every_document_is_changed_once_and_a_second_run_changes_nothing(backend: Backend) -> None:
    await backend.seed(ALL)
    seen: list[int] = []
    first = await applying(backend).apply(DOUBLE, on_progress=seen.append)
    assert (first.seen, first.changed, first.resumed_after, sum(seen)) == (10, 10, None, 10)
    assert first.changes[1] == {"path": "c/01", "fields": {"twice": 2}}
    assert [await backend.fields(f"c/{n:02d}") for n in range(10)] == [{"n": n, "twice": 2 * n} for n in range(10)]
    second = await applying(backend).apply(DOUBLE)
    assert (second.seen, second.changed) == (10, 0)


async def test_a_dry_run_lists_what_a_run_would_do_and_writes_nothing(backend: Backend) -> None:
    await backend.seed({**ALL, "c/odd": {"n": 1, "odd": True}})
    before = await backend.update_time("c/00")
    planned = await applying(backend).apply(DOUBLE, dry_run=True)
    assert await backend.update_time("c/00") == before
    assert not await backend.exists("migrations/double")
    done = await applying(backend).apply(DOUBLE)
    assert (planned.changes, planned.undecided) == (done.changes, done.undecided)
    assert done.undecided == [{"path": "c/odd", "because": "it is odd"}]


async def test_a_run_that_broke_off_goes_on_after_the_last_whole_page(backend: Backend) -> None:
    await backend.seed(ALL)

    def breaks(document: Document) -> Decision:
        if document.id == "05":
            raise StoreUnavailable("the connection broke")
        return doubled(document)

    with pytest.raises(StoreUnavailable):
        await applying(backend).apply(replace(DOUBLE, forward=breaks))
    again = await applying(backend).apply(DOUBLE)
    assert (again.resumed_after, again.seen, again.changed) == ("c/02", 7, 5)
    assert [(await backend.fields(f"c/{n:02d}"))["twice"] for n in range(10)] == [2 * n for n in range(10)]
    assert "cursor" not in await backend.fields("migrations/double")


async def test_the_way_back_begins_at_the_start_and_restores_every_document(backend: Backend) -> None:
    await backend.seed(ALL)
    await applying(backend).apply(DOUBLE)
    undone = await applying(backend).apply(DOUBLE, back=True)
    assert (undone.direction, undone.changed) == ("back", 10)
    assert undone.changes[0] == {"path": "c/00", "fields": {"twice": None}}
    assert [await backend.fields(f"c/{n:02d}") for n in range(10)] == [{"n": n} for n in range(10)]


async def test_a_document_that_another_writer_changes_meanwhile_is_decided_again(backend: Backend) -> None:
    """The version that was read is demanded, so the other writer's change is neither lost nor ignored."""
    await backend.seed({"c/1": {"n": 1}})
    gateway = Gateway(backend.client())
    raced = False
    commit = gateway.commit

    async def late(writes: Any) -> Any:
        nonlocal raced
        if not raced:
            raced = True
            await backend.seed({"c/1": {"n": 7, "note": "kept"}})
        return await commit(writes)

    gateway.commit = late  # type: ignore[method-assign]  # the moment between a read and its write
    once = replace(applying(backend), gateway=gateway)
    report = await once.apply(DOUBLE)
    assert report.changed == 1
    assert await backend.fields("c/1") == {"n": 7, "note": "kept", "twice": 14}


async def test_a_migration_that_asks_for_credentials_gets_those_of_the_document(backend: Backend) -> None:
    def named(document: Document) -> Decision:
        token = document.credentials.get("token")
        return Change({"token": token}) if token else Keep()

    await backend.seed({"c/a": {"n": 1}, "c/b": {"n": 1}})
    migration = replace(DOUBLE, forward=named, reads_credentials=True)
    await applying(backend, a={"token": "x"}).apply(migration)
    assert await backend.fields("c/a") == {"n": 1, "token": "x"}
    assert await backend.fields("c/b") == {"n": 1}


async def test_a_migration_without_a_way_back_says_so(backend: Backend) -> None:
    with pytest.raises(ValueError, match="double has no way back"):
        await applying(backend).apply(replace(DOUBLE, back=None), back=True)
