"""examples/nextup: its simulated Notion, and its client on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from firestore_outbox import Permanent
from nextup.client import Notion as Client
from nextup.notion import BURST, DATABASE, TOKEN, Notion
from nextup.ranking import Change


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def row(name: str, assignee: str = "anna", **fields: Any) -> dict[str, Any]:
    made = {"id": name, "name": name, "assignee": assignee, "importance": 1, "days": 1}
    return {**made, "started": None, "rank": None, "completion": None, **fields}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notion(clock: Clock) -> Notion:
    rows = [row("a"), row("b", "ben"), row("c"), row("d", status="Done"), row("e")]
    return Notion(rows, page_size=2, clock=clock)


@pytest_asyncio.fixture
async def http(notion: Notion) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=notion.app)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://notion", headers=headers) as client:
        yield client


async def test_a_query_reads_the_open_tasks_of_one_person_page_by_page(notion: Notion, http: httpx.AsyncClient) -> None:
    tasks = await Client(http, DATABASE).open_tasks_of("anna")
    assert [task.id for task in tasks] == ["a", "c", "e"]
    assert [(call.method, call.target, call.status) for call in notion.calls] == [("POST", "anna", 200)] * 2


async def test_a_write_changes_the_named_properties_alone(notion: Notion, http: httpx.AsyncClient) -> None:
    client = Client(http, DATABASE)
    (task,) = await client.open_tasks_of("ben")
    before = {**notion.pages["b"]["properties"]}
    await client.write(Change(task=task, rank=4, completion=None))
    after = notion.pages["b"]["properties"]
    assert {name for name in after if after[name] != before[name]} == {"Queue Rank"}
    assert after["Queue Rank"] == {"number": 4}


async def test_above_three_calls_a_second_notion_answers_429_and_names_a_time(
    notion: Notion, http: httpx.AsyncClient, clock: Clock
) -> None:
    async def called() -> httpx.Response:
        return await http.patch("/v1/pages/a", json={"properties": {"Queue Rank": {"number": 9}}})

    assert [(await called()).status_code for _ in range(BURST)] == [200] * BURST
    refused = await called()
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    clock.seconds += 1
    assert [(await called()).status_code for _ in range(BURST + 1)] == [200] * BURST + [429]
    assert [call.at for call in notion.calls] == [0] * 4 + [1] * 4


@pytest.mark.parametrize("database", ["another", DATABASE])
async def test_an_error_that_no_retry_repairs_is_permanent(
    http: httpx.AsyncClient, database: str, notion: Notion
) -> None:
    if database == DATABASE:
        http.headers["Authorization"] = "Bearer revoked"
    with pytest.raises(Permanent, match=r"Notion answered 40[14]"):
        await Client(http, database).open_tasks_of("anna")
    notion.refuse_next = 1
    with pytest.raises(httpx.HTTPStatusError):  # a later run may succeed
        await Client(http, database).open_tasks_of("anna")
