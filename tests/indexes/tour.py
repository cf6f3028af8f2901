"""Every query in the code, asked once. The keys are the places where queries are made; a test looks for others.

The database is empty: whether a query has an index does not depend on what it finds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from google.cloud.firestore import AsyncClient, Query
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.messages.model import MessageStatus, OutboxStatus
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.operations.listing import Behind
from firestore_outbox.wiring import System
from tests.indexes.recording import ROOT

NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def _ready(system: System) -> None:
    ready = system.lanes.ready()
    await anext(ready)
    await ready.aclose()  # type: ignore[attr-defined]  # it is a generator


async def _events(system: System) -> None:
    store = EventStore(system.gateway, system.clock)
    for since in (None, NOW):
        await store.events(LaneRef("nextup", "ann"), since, 10)
        await store.messages("shop__+49", since, 10)


async def _first_pages(system: System) -> None:
    for collection in (paths.OUTBOX, paths.RUNS, paths.REMINDERS):
        async for _ in pages(system.gateway, collection):
            break


async def _of_a_status(system: System) -> None:
    await system.messages.in_status(OutboxStatus.FAILED, limit=10, after="r")
    await system.messages.in_status(OutboxStatus.FAILED, account_id="shop", limit=10, after="r")


async def _of_a_run(system: System) -> None:
    await system.messages.of_run("run", OutboxStatus.QUEUED, 10, "r")
    await system.messages.of_run("run", None, 10, "r")


async def _newest(system: System) -> None:
    behind = Behind(created_at=NOW, request_id="r")
    await system.listing.newest(OutboxStatus.FAILED, account_id="shop", limit=10, behind=behind)
    await system.listing.newest(OutboxStatus.FAILED, account_id=None, limit=10, behind=None)


async def _runs(system: System) -> None:
    await system.runs.runs("shop", 10)
    await system.runs.runs(None, 10)


async def _receipts(system: System) -> None:
    await system.messages.shown("shop", "requestId", "r")
    await system.messages.shown("shop", "providerMessageId", "p")


async def _many_receipts(system: System) -> None:
    await system.messages.shown_all("shop", "requestId", ["r", "s"])
    await system.messages.shown_all("shop", "providerMessageId", ["p", "q"])


OURS: dict[str, Callable[[System], Awaitable[Any]]] = {
    "worker/firestore_outbox/messages/store.py due": lambda system: system.messages.due("shop", NOW, 10),
    "worker/firestore_outbox/messages/store.py next_due": lambda system: system.messages.next_due("shop", NOW),
    "worker/firestore_outbox/messages/store.py abandoned": lambda system: system.messages.abandoned(
        "shop", NOW, system.clock()
    ),
    "worker/firestore_outbox/messages/store.py accounts_with_abandoned": lambda system: (
        system.messages.accounts_with_abandoned(NOW)
    ),
    "worker/firestore_outbox/messages/store.py cancel_requested": lambda system: system.messages.cancel_requested(),
    "worker/firestore_outbox/messages/store.py next_account_due": lambda system: system.messages.next_account_due(
        NOW, "a"
    ),
    "worker/firestore_outbox/messages/store.py in_status": _of_a_status,
    "worker/firestore_outbox/messages/store.py of_run": _of_a_run,
    "worker/firestore_outbox/operations/listing.py _of_all": _newest,
    "worker/firestore_outbox/operations/listing.py _of_account": _newest,
    "worker/firestore_outbox/messages/store.py is_in_sight": lambda system: system.messages.is_in_sight("run"),
    "worker/firestore_outbox/messages/store.py count_of_run": lambda system: system.messages.count_of_run(
        "run", OutboxStatus.SENT
    ),
    "worker/firestore_outbox/messages/store.py count_shown_of_run": lambda system: system.messages.count_shown_of_run(
        "run", MessageStatus.READ
    ),
    "worker/firestore_outbox/messages/store.py count_in_status": lambda system: system.messages.count_waiting("shop"),
    "worker/firestore_outbox/messages/store.py shown": _receipts,
    "worker/firestore_outbox/messages/store.py shown_all": _many_receipts,
    "worker/firestore_outbox/lane/store.py overdue": lambda system: system.lanes.overdue(NOW, 10),
    "worker/firestore_outbox/lane/store.py all": lambda system: system.lanes.all(),
    "worker/firestore_outbox/lane/store.py ready": _ready,
    "worker/firestore_outbox/handlers/dead_letters.py list": lambda system: system.dead_letters.list(10),
    "worker/firestore_outbox/handlers/events.py _from": _events,
    "worker/firestore_outbox/reminders/store.py reminders": lambda system: system.runs.reminders(10),
    "worker/firestore_outbox/reminders/store.py chunk": lambda system: system.runs.chunk("reminder", ""),
    "worker/firestore_outbox/reminders/store.py runs": _runs,
    "worker/firestore_outbox/accounts/store.py routes_of_numbers": lambda system: system.accounts.routes_of_numbers(
        ["1", "2"]
    ),
    "worker/firestore_outbox/operations/audit/pages.py pages": _first_pages,
    # Inside commands that make a system of their own.
    "worker/firestore_outbox/cli/accounts.py work": lambda system: system.gateway.find(
        Find(collection="accounts", limit=1)
    ),
    "worker/firestore_outbox/cli/demo.py count": lambda system: system.gateway.count(
        Find(collection="outbox", where=(("status", "==", "sent"),))
    ),
}


def _of_account(client: AsyncClient, collection: str) -> Any:
    return client.collection(collection).where(filter=FieldFilter("accountId", "==", "shop"))


def _newest_by(found: Any, field: str) -> Any:
    return found.order_by(field, direction=Query.DESCENDING).limit(50)


def _messages(client: AsyncClient) -> Any:
    return _newest_by(client.collection("threads/shop__+49/messages"), "createdAt")


def _waiting(client: AsyncClient) -> Any:
    of_thread = _of_account(client, "outbox").where(filter=FieldFilter("threadId", "==", "shop__+49"))
    return of_thread.where(filter=FieldFilter("status", "in", ["queued", "sending", "uncertain"]))


CLIENTS: dict[str, Callable[[AsyncClient], Any]] = {
    "client watchThread": lambda client: _newest_by(client.collection("threads/shop__+49/messages"), "createdAt"),
    "client watchThreads": lambda client: _newest_by(_of_account(client, "threads"), "lastMessageAt"),
    "client watchWaiting": _waiting,
    "client watch_thread": _messages,
}


# --- where queries are made


def places_in_python() -> Iterator[str]:
    for package in ("worker", "functions"):
        for file in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and _makes_a_query(function):
                    yield f"{file.relative_to(ROOT)} {function.name}"


def _makes_a_query(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Itself, and not a function inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Find":
            return True
        todo.extend(ast.iter_child_nodes(node))
    return False


def places_in_clients() -> Iterator[str]:
    """By the function alone: which file it is in may change."""
    for folder, suffix, function, query in (
        ("client", "js", r"^(?:export )?(?:async )?function (\w+)", r"\bquery\("),
        ("worker/firestore_outbox/backend", "py", r"^(?:async )?def (\w+)", r"\.order_by\(|\.where\("),
    ):
        for file in sorted((ROOT / folder).rglob(f"*.{suffix}")):
            inside = ""
            for line in file.read_text(encoding="utf-8").splitlines():
                if found := re.search(function, line):
                    inside = found[1]
                if re.search(query, line):
                    yield f"client {inside}"
