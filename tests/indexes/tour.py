"""Every query in the code, asked once. The keys are the places where queries are made; a test looks for others.

The database is empty: whether a query has an index does not depend on what it finds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from google.cloud.firestore import AsyncClient, Query
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_outbox.accounts.devices import Devices
from firestore_outbox.accounts.retention import EVERY
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import delete, upsert
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.limits.store import LimitStore
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.messages.conversation import conversation
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.shown_store import ShownStore
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.messages.store import InFlight
from firestore_outbox.operations import retain as retaining
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.operations.listing import Behind
from firestore_outbox.operations.retain import Retain
from firestore_outbox.plans.plan import Plan
from firestore_outbox.plans.usage import Counts
from firestore_outbox.sealing.keys import Keys
from firestore_outbox.sealing.kms import Kms
from firestore_outbox.wiring import System
from tests.indexes.recording import ROOT

NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def _ready(system: System) -> None:
    ready = system.lanes.ready()
    await anext(ready)
    await ready.aclose()  # type: ignore[attr-defined]  # it is a generator


async def _acquirable(system: System) -> None:
    for after in (None, (NOW, "outbox:shop")):
        await system.lanes.acquirable(NOW, 10, after)


async def _in_flight(system: System) -> None:
    for after in (None, InFlight(path="outbox/r", account_id="shop", due_at=NOW, lease_until=None)):
        await system.messages.in_flight(NOW, 10, after)


async def _due_by_account(system: System) -> None:
    await system.messages.due_by_account(NOW, after="a")
    await system.messages.due_by_account(NOW, after="a", before="b")
    await system.messages.due_by_account(NOW, after="a", since=NOW)
    await system.messages.due_by_account(NOW, after="a", before="b", since=NOW)


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
    await system.listing.newest(None, account_id="shop", limit=10, behind=behind)


async def _reasons(system: System) -> None:
    await system.summary.queries.next_reason("run", OutboxStatus.FAILED, None)
    await system.summary.queries.next_reason("run", OutboxStatus.FAILED, "rejected")
    await system.summary.queries.count_reason("run", OutboxStatus.FAILED, "rejected")


async def _counts(system: System) -> None:
    await system.messages.count_in_status(None, OutboxStatus.FAILED)
    await system.messages.count_in_status("shop", OutboxStatus.QUEUED)


async def _actions(system: System) -> None:
    await system.administration.actions("shop")
    await system.administration.actions(None)


async def _reminders(system: System) -> None:
    await system.runs.reminders(10)
    await system.runs.reminders(10, "shop")


async def _runs(system: System) -> None:
    await system.runs.runs("shop", 10)
    await system.runs.runs(None, 10)


async def _keys(system: System) -> None:
    await system.gateway.commit([upsert(paths.account("shop"), {"provider": "simulated"})])
    await Keys(system.gateway, Kms()).of_account("shop")


async def _usage(system: System) -> None:
    plan = Plan(name="free", total=3, per_day=1)
    for with_queued in (False, True):
        await Counts(system.gateway).of("shop", plan, NOW, with_queued=with_queued)


async def _receipts(system: System) -> None:
    await ShownStore(system.gateway).get("shop", "requestId", "r")
    await ShownStore(system.gateway).get("shop", "providerMessageId", "p")


async def _many_receipts(system: System) -> None:
    await ShownStore(system.gateway).get_all("shop", "requestId", ["r", "s"])
    await ShownStore(system.gateway).get_all("shop", "providerMessageId", ["p", "q"])


async def _retain(system: System) -> None:
    """With an account and an old thread, and a page of one document, so that a second page is asked for."""
    thread = {"accountId": "shop", "to": "+49", "lastMessageAt": NOW - timedelta(days=90)}
    account = upsert(paths.account("shop"), {"provider": "simulated", "retentionDays": 30})
    await system.gateway.commit([account, upsert(paths.thread("shop__+49"), thread)])
    retain = Retain(system.gateway, {}, system.clock, window=EVERY)
    with patch.object(retaining, "PAGE", 1):
        await retain.step(NOW, until=system.clock() + timedelta(days=1))
    await system.gateway.commit([delete(paths.account("shop"))])


async def _erase(system: System) -> None:
    with TemporaryDirectory() as directory:
        storage = DirectoryStorage(Path(directory))
        await system.erase.address("shop", "+49", storage)
        await system.erase.account("shop", storage)


OURS: dict[str, Callable[[System], Awaitable[Any]]] = {
    "worker/firestore_outbox/messages/store.py due": lambda system: system.messages.due("shop", NOW, 10),
    "worker/firestore_outbox/messages/store.py waiting": lambda system: system.messages.waiting("shop", 2),
    "worker/firestore_outbox/messages/line.py urgent": lambda system: Line(system.gateway).urgent("shop", 10),
    "worker/firestore_outbox/messages/line.py of_thread": lambda system: Line(system.gateway).of_thread(
        "shop", "shop__+49", 10
    ),
    "worker/firestore_outbox/messages/line.py has_spoken": lambda system: Line(system.gateway).has_spoken("shop__+49"),
    "worker/firestore_outbox/messages/store.py next_due": lambda system: system.messages.next_due("shop", NOW),
    "worker/firestore_outbox/messages/store.py abandoned": lambda system: system.messages.abandoned(
        "shop", NOW, system.clock()
    ),
    "worker/firestore_outbox/messages/store.py in_flight": _in_flight,
    "worker/firestore_outbox/messages/store.py cancel_requested": lambda system: system.messages.cancel_requested(),
    "worker/firestore_outbox/messages/store.py due_by_account": _due_by_account,
    "worker/firestore_outbox/messages/store.py in_status": _of_a_status,
    "worker/firestore_outbox/messages/store.py of_run": _of_a_run,
    "worker/firestore_outbox/operations/listing.py newest": _newest,
    "worker/firestore_outbox/operations/listing.py _of_account": _newest,
    "worker/firestore_outbox/messages/store.py is_in_sight": lambda system: system.messages.is_in_sight("run"),
    "worker/firestore_outbox/messages/store.py count_of_run": lambda system: system.messages.count_of_run(
        "run", OutboxStatus.SENT
    ),
    "worker/firestore_outbox/reminders/run_queries.py next_reason": _reasons,
    "worker/firestore_outbox/reminders/run_queries.py count_reason": _reasons,
    "worker/firestore_outbox/reminders/run_queries.py count_due": lambda system: system.summary.queries.count_due(
        "shop", NOW
    ),
    "worker/firestore_outbox/reminders/run_queries.py under_way": lambda system: system.summary.queries.under_way(
        "shop", 5
    ),
    "worker/firestore_outbox/reminders/run_queries.py firing": lambda system: system.summary.queries.firing(
        "shop", NOW, NOW
    ),
    "worker/firestore_outbox/messages/store.py count_shown_of_run": lambda system: system.messages.count_shown_of_run(
        "run", MessageStatus.READ
    ),
    "worker/firestore_outbox/messages/store.py count_in_status": _counts,
    "worker/firestore_outbox/messages/shown_store.py get": _receipts,
    "worker/firestore_outbox/messages/shown_store.py get_all": _many_receipts,
    "worker/firestore_outbox/lane/store.py acquirable": _acquirable,
    "worker/firestore_outbox/inbound/fetch.py run": lambda system: system.gateway.find(
        Find(collection=paths.fetches("shop"), limit=20)
    ),
    "worker/firestore_outbox/notifications/handler.py waiting": lambda system: system.gateway.find(
        Find(collection=paths.notifications("shop"), where=(("state", "==", "waiting"),), limit=20)
    ),
    "worker/firestore_outbox/accounts/devices.py any": lambda system: Devices(system.gateway).any("shop"),
    "worker/firestore_outbox/accounts/devices.py of_members": lambda system: Devices(system.gateway).of_members("shop"),
    "worker/firestore_outbox/lane/store.py all": lambda system: system.lanes.all(),
    "worker/firestore_outbox/lane/store.py ready": _ready,
    "worker/firestore_outbox/handlers/dead_letters.py list": lambda system: system.dead_letters.list(10),
    "worker/firestore_outbox/handlers/events.py _from": _events,
    "worker/firestore_outbox/reminders/store.py reminders": _reminders,
    "worker/firestore_outbox/limits/store.py all": lambda system: LimitStore(system.gateway).all(10, NOW),
    "worker/firestore_outbox/reminders/store.py chunk": lambda system: system.runs.chunk("reminder", ""),
    "worker/firestore_outbox/reminders/store.py runs": _runs,
    "worker/firestore_outbox/lane/store.py count_ready": lambda system: system.lanes.count_ready(),
    "worker/firestore_outbox/sessions/store.py contacts": lambda system: system.sessions.contacts("shop", 10, "+49"),
    "worker/firestore_outbox/web/console/pages/notifications.py listed": lambda system: system.gateway.find(
        Find(collection=paths.notifications("shop"), order_by=("-createdAt",), limit=50)
    ),
    "worker/firestore_outbox/consent/suppressions.py remove": lambda system: system.suppressions.remove("shop", "+491"),
    "worker/firestore_outbox/consent/suppressions.py page": lambda system: system.suppressions.page("shop", 10, "+49"),
    "worker/firestore_outbox/consent/suppressions.py _in": lambda system: system.suppressions.among("shop", ["+49"]),
    "worker/firestore_outbox/consent/suppressions.py skip_added_since": lambda system: (
        system.suppressions.skip_added_since("shop", NOW)
    ),
    "worker/firestore_outbox/consent/suppressions.py _open": lambda system: system.suppressions.skip_open(
        "shop", "+49"
    ),
    "worker/firestore_outbox/reminders/store.py _chunk_paths": lambda system: system.runs._chunk_paths("reminder"),
    "worker/firestore_outbox/reminders/request_store.py waiting": lambda system: (
        system.change_reminder.requests.waiting("runs/run", NOW)
    ),
    "worker/firestore_outbox/reminders/request_store.py delete_all": lambda system: (
        system.change_reminder.requests.delete_all("reminders/reminder")
    ),
    "worker/firestore_outbox/accounts/store.py routes_of_numbers": lambda system: system.accounts.routes_of_numbers(
        ["1", "2"]
    ),
    "worker/firestore_outbox/accounts/administration.py actions": _actions,
    "worker/firestore_outbox/accounts/administration.py _members": lambda system: system.administration._members(
        "shop"
    ),
    "worker/firestore_outbox/sealing/keys.py _all": _keys,
    "worker/firestore_outbox/operations/erase.py _files_of": _erase,
    "worker/firestore_outbox/operations/erase.py _outbox": _erase,
    "worker/firestore_outbox/operations/erase.py _pages": _erase,
    "worker/firestore_outbox/operations/retain.py _accounts": _retain,
    "worker/firestore_outbox/operations/retain.py _messages": _retain,
    "worker/firestore_outbox/operations/retain.py _threads": _retain,
    "worker/firestore_outbox/operations/retain.py _first_message": _retain,
    "worker/firestore_outbox/plans/usage.py _open": _usage,
    "worker/firestore_outbox/plans/usage.py _doubted": _usage,
    "worker/firestore_outbox/plans/usage.py _sent": _usage,
    "worker/firestore_outbox/operations/connect.py watch": lambda system: anext(system.connect.watch("shop")),
    "worker/firestore_outbox/accounts/members.py accounts_of": lambda system: system.members.accounts_of("alice"),
    "worker/firestore_outbox/operations/overview.py accounts": lambda system: system.overview.accounts(None, limit=10),
    "worker/firestore_outbox/operations/overview.py parked": lambda system: system.overview.parked(None),
    "worker/firestore_outbox/messages/conversation.py conversation": lambda system: conversation(
        system.gateway, "shop", "+49", 10
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
    "client watchAccounts": lambda client: client.collection_group("members").where(
        filter=FieldFilter("uid", "==", "alice")
    ),
    "client watchContacts": lambda client: client.collection("accounts/shop/contacts").limit(1_000),
    "client watchNotifications": lambda client: _newest_by(
        client.collection("accounts/shop/notifications"), "createdAt"
    ),
    "client watchThread": lambda client: _newest_by(client.collection("threads/shop__+49/messages"), "createdAt"),
    "client watchThreads": lambda client: _newest_by(_of_account(client, "threads"), "lastMessageAt"),
    "client watchWaiting": _waiting,
    "client listRuns": lambda client: _newest_by(_of_account(client, "runs"), "createdAt"),
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
