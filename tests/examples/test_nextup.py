"""examples/nextup on the real stack: signed webhooks, one run for a burst, and surgical writes to its Notion."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from firestore_outbox.local.dev import DevSettings, DevStack
from nextup.__main__ import post, runs_in, settings
from nextup.notion import Call, Notion, NotionServer
from tests.patience import PATIENCE_SECONDS

on_one_stack = pytest.mark.asyncio(loop_scope="module")

RETRY_AFTER_SECONDS = 1
"""The shortest that the simulated Notion names."""
EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "nextup" / "README.md").read_text(encoding="utf-8")


def row(task: str, assignee: str, importance: int) -> dict[str, Any]:
    made = {"id": task, "name": task, "assignee": assignee, "importance": importance, "days": 1}
    return {**made, "started": "2026-03-02", "rank": None, "completion": None}


ROWS = [row(f"{who}-{n}", who, n) for who in ("anna", "ben", "carl") for n in (1, 2)]


@dataclass
class World:
    functions: str
    notion: Notion
    report: Path
    http: httpx.AsyncClient

    async def post(self, event_id: str, assignee: str | None) -> dict[str, Any]:
        answer = await post(self.http, self.functions, event_id, assignee)
        assert answer.status_code in (200, 202), answer.text
        return dict(answer.json())

    def runs_of(self, assignee: str) -> list[dict[str, Any]]:
        return [run for run in runs_in(self.report) if run["assignee"] == assignee]

    def calls_for(self, assignee: str) -> list[Call]:
        return [one for one in self.notion.calls if one.target.startswith(assignee)]

    def answered_for(self, assignee: str) -> list[tuple[str, str]]:
        """Without those that got a 429: calls that are late on their way may come close together."""
        return [(one.method, one.target) for one in self.calls_for(assignee) if one.status == 200]

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not what():  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def notion() -> Iterator[tuple[Notion, str]]:
    made = Notion(ROWS)
    with NotionServer(made) as url:
        yield made, url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(notion: tuple[Notion, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    report = tmp_path_factory.mktemp("nextup") / "report.jsonl"
    environment = settings(notion[1], report) | {"NEXTUP_QUIET_SECONDS": "0.5", "OUTBOX_LOG_LEVEL": "WARNING"}
    stack_settings = DevSettings(
        firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0, environment=environment
    )
    async with (
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http,
        DevStack(stack_settings) as stack,
    ):
        yield World(f"http://127.0.0.1:{stack.ports['functions']}", notion[0], report, http)


@on_one_stack
async def test_a_burst_is_one_run_and_a_change_that_is_there_already_is_not_written(world: World) -> None:
    """The burst comes while a run is under way: on a slow machine too, it is all there when the next run begins."""
    world.notion.gate.clear()
    await world.post("anna-first", "anna")
    await world.until(lambda: world.notion.waiting == 1)
    burst = [f"anna-burst-{n}" for n in range(6)]
    for event_id in [*burst, burst[0]]:  # the last one is a repeated delivery
        await world.post(event_id, "anna")
    world.notion.gate.set()
    await world.until(lambda: len(world.runs_of("anna")) == 2)
    first, second = world.runs_of("anna")
    assert first["events"] == ["anna-first"]
    assert [(one["task"], one["rank"], one["completion"]) for one in first["changes"]] == [
        ("anna-2", 1, "2026-03-02"),
        ("anna-1", 2, "2026-03-02"),
    ]
    assert sorted(second["events"]) == burst
    assert second["changes"] == []
    query = ("POST", "anna")
    assert world.answered_for("anna") == [query, ("PATCH", "anna-2"), ("PATCH", "anna-1"), query]


@on_one_stack
async def test_an_event_without_an_assignee_is_skipped(world: World) -> None:
    assert await world.post("none-1", None) == {"skipped": True}
    assert not any("none-1" in run["events"] for run in runs_in(world.report))


@on_one_stack
async def test_after_429_answers_the_run_pauses_and_ends_with_everything_written(world: World) -> None:
    world.notion.refuse_next = 2
    await world.post("ben-1", "ben")
    await world.until(lambda: world.runs_of("ben"))
    first, second, third = world.calls_for("ben")[:3]
    assert (first.status, second.status) == (429, 429)
    assert min(second.at - first.at, third.at - second.at) > 0.9 * RETRY_AFTER_SECONDS
    assert world.answered_for("ben")[-2:] == [("PATCH", "ben-2"), ("PATCH", "ben-1")]
    ranks = {name: world.notion.pages[name]["properties"]["Queue Rank"]["number"] for name in ("ben-1", "ben-2")}
    assert ranks == {"ben-2": 1, "ben-1": 2}


@on_one_stack
async def test_a_webhook_that_notion_did_not_sign_is_refused(world: World) -> None:
    headers = {"X-Notion-Signature": "sha256=" + "0" * 64}
    body = {"id": "carl-1", "data": {"assignee": {"id": "carl"}}}
    answer = await world.http.post(f"{world.functions}/v1/events/nextup", json=body, headers=headers)
    assert answer.status_code == 401


def said_by_the_command(*words: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OUTBOX_"))}
    done = subprocess.run(
        [sys.executable, "-m", "nextup", *words],
        cwd=EXAMPLES,
        env=kept,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [without_counts(line) for line in done.stdout.splitlines()]


def without_counts(line: str) -> str:
    """On a slow machine a burst may be two runs, and Notion may see two calls close together."""
    return re.sub(r"(runs|Notion:|writes,) \d+", r"\1 N", line)


def test_the_command_prints_what_its_readme_shows() -> None:
    shown = README.partition("```text\n")[2].partition("```")[0]
    assert said_by_the_command() == [without_counts(line) for line in shown.splitlines()]


def test_a_dry_run_reports_the_changes_and_writes_nothing() -> None:
    said = said_by_the_command("--dry-run")
    assert "carl: events 1, runs N, open tasks 1, would change 1" in said
    assert "  Choose a new logo          rank none -> 1   done by 2026-03-03" in said
    assert said[-1] == "Notion: N calls, 0 of them writes, N answered with 429"
