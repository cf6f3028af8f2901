"""`python -m nextup [--dry-run]`: the whole example on this machine. It ends by itself."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from nextup.notion import DATABASE, TOKEN, TOO_MANY_REQUESTS, Notion, NotionServer

HERE = Path(__file__).parent
SECRET = "a-secret-of-this-machine"
PORTS = ("firestore", "tasks", "functions", "worker", "provider", "page")
BURSTS: Mapping[str | None, int] = {"anna": 5, "ben": 3, "carl": 1, None: 1}
"""Assignee -> how often Notion reports a change. None: a task without an assignee."""
LONGEST_WAIT_SECONDS = 240.0


def settings(notion_url: str, report: Path) -> dict[str, str]:
    """The environment of functions and workers."""
    return {
        "PYTHONPATH": str(HERE.parent),
        "OUTBOX_HANDLERS": "nextup.handlers",
        "OUTBOX_EVENTS": str(HERE / "events.json"),
        "OUTBOX_EVENT_SECRET_NEXTUP": SECRET,
        "OUTBOX_LIMITS": "notion=3/3",
        "NOTION_URL": notion_url,
        "NOTION_TOKEN": TOKEN,
        "NOTION_DATABASE": DATABASE,
        "NEXTUP_QUIET_SECONDS": "2",
        "NEXTUP_TODAY": "2026-03-02",
        "NEXTUP_REPORT": str(report),
    }


async def post(http: httpx.AsyncClient, functions: str, event_id: str, assignee: str | None) -> httpx.Response:
    """A webhook as Notion sends it. The signature is the HMAC-SHA256 of the body."""
    data = {"assignee": None if assignee is None else {"id": assignee}}
    body = json.dumps({"id": event_id, "type": "page.properties_updated", "data": data}).encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-Notion-Signature": signature}
    return await http.post(f"{functions}/v1/events/nextup", content=body, headers=headers)


def runs_in(report: Path) -> list[dict[str, Any]]:
    """What the handlers reported so far."""
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


@asynccontextmanager
async def outbox_dev(environment: Mapping[str, str]) -> AsyncIterator[dict[str, str]]:
    """`outbox dev` on free ports, until the block ends. Its value: the addresses by name."""
    command = ["-m", "firestore_outbox.cli", "dev", "--json", *(f"--{name}-port=0" for name in PORTS)]
    stack = await asyncio.create_subprocess_exec(
        sys.executable, *command, env={**os.environ, **environment}, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert stack.stdout is not None
        ready = await stack.stdout.readline()
        if not ready:
            sys.exit("outbox dev did not start; the reason is above")
        yield json.loads(ready)
    finally:
        if stack.returncode is None:
            stack.terminate()
        await stack.wait()


async def main(is_dry: bool) -> None:
    notion = Notion(json.loads((HERE / "tasks.json").read_text()))
    with tempfile.TemporaryDirectory() as folder, NotionServer(notion) as notion_url:
        report = Path(folder) / "report.jsonl"
        environment = settings(notion_url, report) | ({"NEXTUP_DRY_RUN": "1"} if is_dry else {})
        print("starting the stack ...", flush=True)
        async with outbox_dev(environment) as addresses:
            taken = await post_all(addresses["functions"])
            print(f"waiting for {len(taken)} events to be handled ...", flush=True)
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await until_handled(report, taken)
        show(runs_in(report))
    refused = sum(call.status == TOO_MANY_REQUESTS for call in notion.calls)
    writes = sum(call.method == "PATCH" and call.status == 200 for call in notion.calls)
    print(f"Notion: {len(notion.calls)} calls, {writes} of them writes, {refused} answered with 429")


async def post_all(functions: str) -> set[str]:
    """The ids of the events that were stored."""
    names = [(f"{assignee}-{number}", assignee) for assignee, count in BURSTS.items() for number in range(count)]
    async with httpx.AsyncClient(trust_env=False, timeout=LONGEST_WAIT_SECONDS) as http:
        answers = await asyncio.gather(*(post(http, functions, name, assignee) for name, assignee in names))
    for answer in answers:
        answer.raise_for_status()
    skipped = sum("skipped" in answer.json() for answer in answers)
    print(f"posted {len(answers)} signed webhooks; skipped, because they name no assignee: {skipped}", flush=True)
    return {name for (name, _), answer in zip(names, answers, strict=True) if "skipped" not in answer.json()}


async def until_handled(report: Path, events: set[str]) -> None:
    handled: set[str] = set()
    while not events <= handled:
        await asyncio.sleep(0.2)
        handled = {event for run in runs_in(report) for event in run["events"]}


def show(runs: list[dict[str, Any]]) -> None:
    for assignee in sorted({run["assignee"] for run in runs}):
        own = [run for run in runs if run["assignee"] == assignee]
        events, changes = sum(len(run["events"]) for run in own), [one for run in own for one in run["changes"]]
        what = "would change" if own[0]["dryRun"] else "changed"
        print(f"\n{assignee}: events {events}, runs {len(own)}, open tasks {own[-1]['tasks']}, {what} {len(changes)}")
        for one in changes:
            rank = "" if one["rank"] is None else f"rank {one['from'] or 'none'} -> {one['rank']}"
            completion = "" if one["completion"] is None else f"done by {one['completion']}"
            print(f"  {one['task']:<26} {rank:<16} {completion}".rstrip())
    print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m nextup", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="write nothing to Notion")
    asyncio.run(main(parser.parse_args().dry_run))
