"""A Notion on this machine: one database, three requests a second, and a record of each call.

    with NotionServer(Notion(rows)) as url: ...

It speaks Notion's own API, as far as this example needs it: `POST /v1/databases/{id}/query` with a filter and pages,
and `PATCH /v1/pages/{id}`. Above the rate it answers 429 with Retry-After, as Notion does.
"""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

DATABASE, TOKEN = "tasks", "secret_local"
PER_SECOND, BURST = 3.0, 3
PAGE_SIZE = 100
"""Notion's own maximum."""
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    at: float
    """Seconds, of a clock that only goes forward."""
    method: str
    target: str
    """The assignee of a query, the id of a page."""
    status: int


class Notion:
    def __init__(
        self, rows: list[dict[str, Any]], *, page_size: int = PAGE_SIZE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.pages = {row["id"]: page_of(row) for row in rows}
        self.calls: list[Call] = []
        self.refuse_next = 0
        """Calls that get a 429, whatever the rate: another integration uses the workspace too."""
        self.gate = threading.Event()
        """While it is not set, queries wait for their answer."""
        self.gate.set()
        self.waiting = 0
        """Queries that wait at the gate."""
        self._page_size = page_size
        self._clock = clock
        self._tokens, self._filled_at = float(BURST), clock()
        self.app = Starlette(
            routes=[
                Route("/v1/databases/{id}/query", self._query, methods=["POST"]),
                Route("/v1/pages/{id}", self._update, methods=["PATCH"]),
            ]
        )

    async def _query(self, request: Request) -> JSONResponse:
        body = await request.json()
        found = [page for page in self.pages.values() if matches(page, body["filter"])]
        first = int(body.get("start_cursor", 0))
        after = first + self._page_size
        is_more = after < len(found)
        answer = {
            "results": found[first:after],
            "has_more": is_more,
            "next_cursor": str(after) if is_more else None,
        }
        response = self._answered(request, assignee_in(body["filter"]), request.path_params["id"] == DATABASE, answer)
        if not self.gate.is_set():
            self.waiting += 1
            await asyncio.to_thread(self.gate.wait)
            self.waiting -= 1
        return response

    async def _update(self, request: Request) -> JSONResponse:
        page = self.pages.get(request.path_params["id"])
        properties = (await request.json())["properties"]
        answer = self._answered(request, request.path_params["id"], page is not None, page or {})
        if page is not None and answer.status_code == 200:
            page["properties"].update(properties)
        return answer

    def _answered(self, request: Request, target: str, exists: bool, answer: Mapping[str, Any]) -> JSONResponse:
        wait = self._wait()
        if wait is not None:
            headers = {"Retry-After": str(max(1, math.ceil(wait)))}
            response = JSONResponse({"code": "rate_limited"}, TOO_MANY_REQUESTS, headers)
        elif request.headers.get("authorization") != f"Bearer {TOKEN}":
            response = JSONResponse({"code": "unauthorized"}, 401)
        elif not exists:
            response = JSONResponse({"code": "object_not_found"}, 404)
        else:
            response = JSONResponse(answer)
        self.calls.append(Call(at=self._clock(), method=request.method, target=target, status=response.status_code))
        return response

    def _wait(self) -> float | None:
        """None: the call is within the rate. Otherwise the seconds until the next one is."""
        now = self._clock()
        self._tokens = min(BURST, self._tokens + (now - self._filled_at) * PER_SECOND)
        self._filled_at = now
        if self.refuse_next > 0:
            self.refuse_next -= 1
            return 1.0
        if self._tokens < 1:
            return (1 - self._tokens) / PER_SECOND
        self._tokens -= 1
        return None


def page_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of tasks.json as Notion shows a page."""

    def date(value: str | None) -> dict[str, Any]:
        return {"date": None if value is None else {"start": value}}

    return {
        "object": "page",
        "id": row["id"],
        "properties": {
            "Name": {"title": [{"plain_text": row["name"]}]},
            "Assignee": {"people": [{"id": row["assignee"]}]},
            "Status": {"status": {"name": row.get("status", "Open")}},
            "Importance": {"number": row["importance"]},
            "Estimate": {"number": row["days"]},
            "Task Started": date(row["started"]),
            "Queue Rank": {"number": row["rank"]},
            "Projected Completion": date(row["completion"]),
        },
    }


def matches(page: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """The filters that the example uses: `and`, `people contains`, `status does_not_equal`."""
    if "and" in wanted:
        return all(matches(page, one) for one in wanted["and"])
    value = page["properties"][wanted["property"]]
    if "people" in wanted:
        return any(person["id"] == wanted["people"]["contains"] for person in value["people"])
    return bool(value["status"]["name"] != wanted["status"]["does_not_equal"])


def assignee_in(wanted: Mapping[str, Any]) -> str:
    """For the record."""
    return next((str(one["people"]["contains"]) for one in wanted.get("and", [wanted]) if "people" in one), "")


class NotionServer:
    """Serves a Notion on a free port of this machine, in a thread. Its value is the address."""

    def __init__(self, notion: Notion) -> None:
        self._server = uvicorn.Server(uvicorn.Config(notion.app, log_level="warning", lifespan="off"))
        self._socket = socket.socket()
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> str:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()  # from here on calls wait for the thread; none is refused
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join()
