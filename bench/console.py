"""What a page of the console costs: processor time of the server and documents read; and what viewers cost the worker.

    python -m bench.console [--small]

It fails when a page takes more than 50 ms of the server's processor time, or when paging misses a message.

Method. A whole stack of real processes with 24 accounts and 10,000 messages in the emulator; the console runs in the
measuring process, on the same Firestore, without a socket between it and the measurement, so that the process's
processor time is that of the console and its HTTP client. Every page is loaded several times after what pages share
was forgotten, so that each load reads and renders anew; the median counts. Documents read are those of the emulator's
billing meter for one load on the stack, which sends nothing meanwhile. Paging follows the link of the page until there
is none. Viewers: another stack, on which the worker sends 20 messages a second, in alternating rounds without an open
page and with 20 pages that follow the console's live updates; the ratio is that of the medians of the worker's
processor time for each message.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from bench.report import arguments, heading, keep, say
from bench.watched import watched
from firestore_outbox.clock import system_clock
from firestore_outbox.firestore.writes import create
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.settings import Settings
from firestore_outbox.web.console.app import app
from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.screens import Console
from firestore_outbox.web.console.views import Views
from firestore_outbox.web.serve import system_from_environment
from firestore_outbox.wiring import System

ACCOUNTS, MESSAGES = 24, 10_000
SMALL_MESSAGES = 300
LOADS = 15
LARGEST_MS = 50.0
STACK = DevSettings(
    firestore_port=0,
    tasks_port=0,
    functions_port=0,
    worker_port=0,
    provider_port=0,
    console_port=0,
    sweep_seconds=3_600,
    environment={"OUTBOX_LOG_LEVEL": "ERROR"},
)
ORIGIN = "http://console"
MORE = re.compile(r'href="(/messages\?[^"]*after=[^"]*)"')
ROW = re.compile(r'<th scope="row"><a class="said" href="/messages/([^"]+)"')


def account(number: int) -> str:
    return f"account-{number:02d}"


def message(number: int, now: datetime) -> dict[str, Any]:
    """Failed, so that no worker touches it."""
    account_id, to = account(0), f"+4915500{number:05d}"
    return {
        "requestId": f"message-{number:05d}",
        "accountId": account_id,
        "threadId": f"{account_id}__{to}",
        "to": to,
        "parts": [{"type": "text", "text": "Your order is ready."}],
        "status": "failed",
        "createdAt": now - timedelta(seconds=number),
        "attempts": 1,
        "lastError": {"code": "rejected", "message": "It was rejected.", "retryable": False, "at": now},
    }


async def fill(system: System, messages: int) -> None:
    now = datetime.now(UTC)
    fields = {"provider": "simulated", "status": "active", "pace": {"perMinute": 40}}
    await system.gateway.commit([create(f"accounts/{account(number)}", fields) for number in range(ACCOUNTS)])
    for first in range(0, messages, 500):
        documents = [message(number, now) for number in range(first, min(first + 500, messages))]
        await system.gateway.commit([create(f"outbox/{one['requestId']}", one) for one in documents])


async def measured(http: httpx.AsyncClient, views: Views, bill: httpx.AsyncClient, path: str) -> dict[str, Any]:
    billing, spent, reads = f"/emulator/v1/projects/{PROJECT}:billing", [], []
    for _ in range(LOADS):
        views.forget()
        before = (await bill.get(billing)).json()["reads"]
        started = time.process_time()
        answer = await http.get(path)
        spent.append((time.process_time() - started) * 1_000)
        assert answer.status_code == httpx.codes.OK, (path, answer.status_code)
        reads.append((await bill.get(billing)).json()["reads"] - before)
    found = {"path": path, "cpuMs": round(statistics.median(spent), 1), "reads": statistics.median_low(reads)}
    say(f"{path}: {found['cpuMs']} ms of processor time, {found['reads']} reads")
    return found


async def paged(http: httpx.AsyncClient, messages: int) -> dict[str, Any]:
    path: str | None = f"/messages?account={account(0)}"
    seen: set[str] = set()
    pages, started = 0, time.process_time()
    while path is not None:
        text = (await http.get(path)).text
        seen |= set(ROW.findall(text))
        pages += 1
        found = MORE.search(text)
        path = found[1].replace("&amp;", "&") if found else None
    spent = (time.process_time() - started) * 1_000
    assert len(seen) == messages, f"{len(seen)} of {messages} messages were listed"
    return {"messages": len(seen), "pages": pages, "cpuMsAPage": round(spent / pages, 1)}


async def work(messages: int) -> dict[str, Any]:
    async with DevStack(STACK) as stack:
        environment = {**os.environ, **stack.environment}
        os.environ.update(stack.environment)  # the Firestore client finds the emulator there
        identity = Identity(PROJECT, "", system_clock, environment)
        async with (
            system_from_environment(Settings.from_environment(environment), environment) as system,
            httpx.AsyncClient(base_url=f"http://{stack.firestore}", trust_env=False) as bill,
        ):
            await fill(system, messages)
            views = Views(system_clock)
            transport = httpx.ASGITransport(app(Console(system, identity, views)))
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=60) as http:
                form = {"email": "operator@example.com", "password": "local", "to": "/"}
                await http.post("/sign-in", data=form, headers={"origin": ORIGIN})
                shop = account(0)
                paths = ["/", "/needs", "/messages", f"/messages?account={shop}", "/messages/message-00000", "/runs"]
                paths += [f"/reminders/new?account={shop}", f"/accounts/{shop}", f"/accounts/{shop}/settings"]
                paths += [f"/accounts/{shop}/phone", f"/accounts/{shop}/contacts", "/lanes", "/audit"]
                pages = [await measured(http, views, bill, path) for path in paths]
                return {"pages": pages, "paging": await paged(http, messages)}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    load = asyncio.run(watched(is_small=options.small))
    found = {**asyncio.run(work(SMALL_MESSAGES if options.small else MESSAGES)), "worker": load}
    keep({**heading("pages of the console", __doc__), **found}, "console", options)
    slow = [page for page in found["pages"] if page["cpuMs"] > LARGEST_MS]
    if slow and not options.small:
        sys.exit(f"more than {LARGEST_MS:g} ms of processor time: {slow}")


if __name__ == "__main__":
    main()
