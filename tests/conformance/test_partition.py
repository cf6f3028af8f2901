"""PartitionQuery. Google's emulator has none, so these tests hold ours to the definition: the parts are the whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.conformance.backends import Backend, outcome, refused
from tests.conformance.wire import REQUESTS, Cursor, Proto, cursor, delete, query, set_, stamp, where

WHOLE = query("s", group=True, order=["__name__"])


@pytest.fixture(params=["grpc", "inprocess"])
def ours(request: pytest.FixtureRequest) -> Backend:
    return Backend(request.getfixturevalue(f"{request.param}_place"))


async def fill(backend: Backend, count: int) -> None:
    """Documents of the group at several depths, and others around them."""
    paths = [("s/{0}", "c/{0}/s/x", "c/a/d/{0}/s/{0}")[number % 3].format(number) for number in range(count)]
    await backend.seed({path: {"n": 1} for path in paths} | {"c/1": {}, "t/1": {}})


async def partition(backend: Backend, count: int, structured: Proto = WHOLE, **options: Any) -> Proto:
    request = REQUESTS["PartitionQuery"](
        parent=backend.root, structured_query=structured, partition_count=count, **options
    )
    return await backend.call("PartitionQuery", request)


async def parts(backend: Backend, cursors: list[Proto], **options: Any) -> list[list[str]]:
    """What the queries between the split points find."""
    edges = [None, *cursors, None]
    found = []
    for start, end in pairwise(edges):
        asked = query("s", group=True, order=["__name__"], start=start, end=end)
        found.append(await backend.paths(asked, **options))
    return found


@pytest.mark.parametrize("documents", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("count", [1, 2, 5, 60])
async def test_the_parts_are_the_whole_share_nothing_and_are_of_about_one_size(
    ours: Backend, documents: int, count: int
) -> None:
    await fill(ours, documents)
    cursors = list((await partition(ours, count)).partitions)
    assert len(cursors) == min(count, max(0, documents - 1)), "as many as were asked for, if no part need be empty"
    found = await parts(ours, cursors)
    whole = await ours.paths(WHOLE)
    assert len(whole) == documents
    assert [path for part in found for path in part] == whole
    sizes = [len(part) for part in found]
    assert max(sizes) - min(sizes) <= 1


async def test_pages_are_of_one_moment_whatever_is_written_between_them(ours: Backend) -> None:
    await fill(ours, 20)
    moment = stamp((await ours.commit(set_(ours.name("s/last")))).commit_time)
    at_once = [bytes(one.SerializeToString()) for one in (await partition(ours, 6)).partitions]
    paged: list[Proto] = []
    token, pages = "", 0
    while token or not pages:
        page = await partition(ours, 6, page_size=2, page_token=token)
        assert len(page.partitions) <= 2
        paged.extend(page.partitions)
        token, pages = page.next_page_token, pages + 1
        await ours.commit(delete(ours.name(f"s/{3 * pages}")), *(set_(ours.name(f"s/new{pages}{n}")) for n in range(9)))
    assert pages == 3
    assert [bytes(one.SerializeToString()) for one in paged] == at_once
    # And what was true then can still be read.
    then = await partition(ours, 6, read_time=moment.proto())
    assert [bytes(one.SerializeToString()) for one in then.partitions] == at_once
    found = await parts(ours, paged, read_time=moment.proto())
    assert [path for part in found for path in part] == await ours.paths(WHOLE, read_time=moment.proto())
    now = await parts(ours, paged)
    assert [path for part in now for path in part] == await ours.paths(WHOLE), "old split points still split the whole"


@pytest.mark.parametrize(
    ("structured", "options"),
    [
        (query("s", order=["__name__"]), {}),
        (query("", group=True, order=["__name__"]), {}),
        (query("s", group=True), {}),
        (query("s", group=True, order=["n"]), {}),
        (query("s", group=True, order=["-__name__"]), {}),
        (query("s", where("n", "==", 1), group=True, order=["__name__"]), {}),
        (query("s", group=True, order=["__name__"], limit=5), {}),
        (query("s", group=True, order=["__name__"], offset=5), {}),
        (query("s", group=True, order=["__name__"], start=cursor(before=True)), {}),
        (WHOLE, {"partition_count": 0}),
        (WHOLE, {"partition_count": -1}),
        (WHOLE, {"page_size": -1}),
        (WHOLE, {"page_token": "?"}),
        (WHOLE, {"page_token": "AAAA"}),
        (WHOLE, {"parent": "c/a"}),
        (WHOLE, {"read_time": Timestamp(seconds=2**33)}),
    ],
)
async def test_what_cannot_be_partitioned_is_refused(ours: Backend, structured: Proto, options: dict[str, Any]) -> None:
    request = REQUESTS["PartitionQuery"](parent=ours.root, structured_query=structured, partition_count=2)
    for name, item in options.items():
        if name == "read_time":
            request.read_time.CopyFrom(item)
        else:
            setattr(request, name, ours.name(item) if name == "parent" else item)
    answer = await outcome(ours.call("PartitionQuery", request))
    # A descending order by name alone is refused in any query, with a code of its own.
    assert answer in ("INVALID_ARGUMENT", "FAILED_PRECONDITION"), answer


async def test_googles_client_gets_partitions_and_runs_them(ours: Backend) -> None:
    await fill(ours, 25)
    client = ours.client()
    found = []
    partitions = [one async for one in client.collection_group("s").get_partitions(4)]
    assert len(partitions) == 5
    for one in partitions:
        found.extend([document.reference.path async for document in one.query().stream()])
    assert found == await ours.paths(WHOLE)


async def test_a_split_point_is_a_name_and_lies_before_its_document(ours: Backend) -> None:
    await ours.seed({"s/a": {}, "s/b": {}})
    [only] = (await partition(ours, 1)).partitions
    assert only == Cursor(values=only.values, before=True)
    assert [item.reference_value for item in only.values] == [ours.name("s/b")]


async def test_a_moment_that_is_forgotten_is_refused_on_the_next_page_too(ours: Backend) -> None:
    token = "AAAAAAAAAAEAAAAB"  # the first microsecond of 1970
    with refused("FAILED_PRECONDITION"):
        await partition(ours, 2, page_token=token)
