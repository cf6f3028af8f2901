"""The two calls of Notion's API that this example makes, and the translation between pages and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import httpx

from firestore_outbox import Permanent
from nextup.ranking import Change, Task

NOT_REPAIRED_BY_A_RETRY = (400, 401, 403, 404)
VERSION = "2022-06-28"
"""Of Notion's API; a header that each call needs."""


class Notion:
    def __init__(self, http: httpx.AsyncClient, database: str) -> None:
        """`http` has Notion's address, the token and the transport that keeps to the rate."""
        self._http = http
        self._database = database

    async def open_tasks_of(self, assignee: str) -> list[Task]:
        """The database filters: other people's tasks, and those that are done, are never read."""
        wanted = [
            {"property": "Assignee", "people": {"contains": assignee}},
            {"property": "Status", "status": {"does_not_equal": "Done"}},
        ]
        body: dict[str, Any] = {"filter": {"and": wanted}}
        tasks: list[Task] = []
        while True:
            page = await self._call("POST", f"/v1/databases/{self._database}/query", body)
            tasks += [task_of(found) for found in page["results"]]
            if not page["has_more"]:
                return tasks
            body["start_cursor"] = page["next_cursor"]

    async def write(self, change: Change) -> None:
        await self._call("PATCH", f"/v1/pages/{change.task.id}", {"properties": properties_of(change)})

    async def _call(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        answer = await self._http.request(method, path, json=body, headers={"Notion-Version": VERSION})
        if answer.status_code in NOT_REPAIRED_BY_A_RETRY:
            raise Permanent(f"Notion answered {answer.status_code} to {method} {path}")
        answer.raise_for_status()  # another error: the run is repeated
        return answer.json()


def task_of(page: Mapping[str, Any]) -> Task:
    properties = page["properties"]
    return Task(
        id=page["id"],
        name="".join(piece["plain_text"] for piece in properties["Name"]["title"]),
        importance=properties["Importance"]["number"] or 0,
        days=int(properties["Estimate"]["number"] or 1),
        started=_date(properties["Task Started"]),
        rank=None if properties["Queue Rank"]["number"] is None else int(properties["Queue Rank"]["number"]),
        completion=_date(properties["Projected Completion"]),
    )


def properties_of(change: Change) -> dict[str, Any]:
    """Only what changed."""
    found: dict[str, Any] = {}
    if change.rank is not None:
        found["Queue Rank"] = {"number": change.rank}
    if change.completion is not None:
        found["Projected Completion"] = {"date": {"start": change.completion.isoformat()}}
    return found


def _date(value: Mapping[str, Any]) -> date | None:
    return None if value["date"] is None else date.fromisoformat(value["date"]["start"][:10])
