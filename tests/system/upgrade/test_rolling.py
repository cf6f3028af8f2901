"""A rolling upgrade and its rollback, on real processes: two versions on one database, every change a kill -9."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from google.cloud.firestore import AsyncClient, FieldFilter

from tests.conformance.tally import REQUIRE_ALL
from tests.patience import PATIENCE_SECONDS
from tests.system.chaos.clients import ACCOUNTS, Account, Clients
from tests.system.chaos.evidence import at_rest, gathered
from tests.system.chaos.judge import breaches
from tests.system.chaos.plan import WORKERS
from tests.system.upgrade import previous
from tests.system.upgrade.stack import RollingStack

NUMBERED = tuple(Account(account_id=f"number-{n}", provider="whatsapp_cloud") for n in range(3))
"""Accounts that the migration changes."""
EVERYBODY = (*ACCOUNTS[:6], *NUMBERED)
ALONE = Account(account_id="alone", provider="simulated")
"""Gets one message."""
PROVIDER_FAULTS = {
    "latencyMs": 20,
    "latencyJitterMs": 60,
    "errorRate": 0.02,
    "receiptDelayMs": 200,
    "receiptDuplicateRate": 0.1,
    "receiptShuffle": True,
}
MESSAGES_A_STEP = 36
SECONDS_A_STEP = 3.0
"""Pace of the clients, so that a step meets messages in every state. Nothing depends on it."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return previous.unpack(tmp_path_factory.mktemp("previous"))


def test_a_process_of_the_previous_version_imports_nothing_of_the_new_one(tree: Path) -> None:
    code = "import functions.main, worker, emulator; print(functions.main.__file__, worker.__file__, emulator.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**previous.environment(tree), "OUTBOX_PROJECT": "p", "GOOGLE_CLOUD_PROJECT": "p"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert all(Path(file).is_relative_to(tree) for file in done.stdout.split()), done.stdout


def test_a_clone_without_the_previous_version_says_so_and_fails_where_all_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previous, "COMMIT", "0" * 40)
    for required, outcome in (("0", pytest.skip.Exception), ("1", pytest.fail.Exception)):
        monkeypatch.setenv(REQUIRE_ALL, required)
        with pytest.raises(outcome, match=r"not in this clone.*git fetch --unshallow"):
            previous.unpack(tmp_path)


async def test_two_versions_on_one_database_lose_double_and_misorder_nothing_on_the_way_up_and_back(
    tree: Path,
) -> None:
    """Messages are written during each step. A failure leaves data and logs behind."""
    directory = Path(tempfile.mkdtemp(prefix="outbox-upgrade-"))
    said = [f"data and logs: {directory}"]
    async with RollingStack(directory, tree) as stack, stack.client("us") as ours, stack.client("clients") as theirs:
        await make_accounts(ours)
        await stack.order_faults(PROVIDER_FAULTS)
        clients = Clients(theirs, EVERYBODY, Random(1))

        async def step(what: str, work: Awaitable[object]) -> None:
            said.append(what)
            async with asyncio.TaskGroup() as both:
                both.create_task(clients.write(MESSAGES_A_STEP, SECONDS_A_STEP))
                both.create_task(done(work))

        await step("the previous version alone", nothing())
        await step("migrate", asyncio.to_thread(migrated, stack.outbox))
        await step("new functions", stack.deploy("new", "functions"))
        await step("a short turn while every worker is down", short_turn(stack, ours, clients))
        await step("one new worker", stack.deploy("new", WORKERS[0]))
        await step("the new worker dies", stack.deploy("new", WORKERS[0]))
        await step("an old worker dies, and comes back old", stack.deploy("previous", WORKERS[1]))
        await step("all workers new", stack.deploy("new", *WORKERS[1:]))
        assert set(stack.versions.values()) == {"new"}
        await step("rollback of a worker and the functions", stack.deploy("previous", WORKERS[2], "functions"))
        await step("rollback of the others", stack.deploy("previous", *WORKERS[:2]))
        assert set(stack.versions.values()) == {"previous"}
        sent_before = await sent(ours)
        await step("the previous version alone, on migrated documents", nothing())
        rested = await at_rest(stack, ours, said.append, (*EVERYBODY, ALONE))
        evidence = await gathered(stack, ours, clients.written, (*EVERYBODY, ALONE))
        sent_after = await sent(ours)
    found = [*([] if rested else ["lost: it did not come to rest"]), *breaches(evidence)]
    assert not found, "\n".join([*found, *said])
    assert len(clients.written) == 11 * MESSAGES_A_STEP + 1
    for account in NUMBERED:
        assert sent_after[account.account_id] > sent_before[account.account_id], "the old version sent for it"
    statuses = Counter(str(data["status"]) for data in evidence.outbox.values())
    assert statuses["sent"] > len(evidence.outbox) / 2, f"too little was sent to show anything: {statuses}"
    shutil.rmtree(directory)


async def short_turn(stack: RollingStack, ours: AsyncClient, clients: Clients) -> None:
    """The new functions send a message that comes alone while no worker runs; then the old workers come back."""
    for name in WORKERS:
        await stack.parts[name].kill()
    to = "+491511234567"
    request_id = await clients.write_one(ALONE.account_id, to)
    message = ours.document(f"threads/{ALONE.account_id}__{to}/messages/{request_id}")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await message.get()).get("status") == "queued":  # noqa: ASYNC110 - this client cannot listen
            await asyncio.sleep(0.1)
    await stack.deploy("previous", *WORKERS)


async def make_accounts(client: AsyncClient) -> None:
    for account in (*EVERYBODY, ALONE):
        fields = {"provider": account.provider, "status": "active", "pace": {"perMinute": 0}, "onUncertain": "hold"}
        await client.document(f"accounts/{account.account_id}").set(fields)


def migrated(outbox: Callable[..., str]) -> None:
    """While the previous version works on the same documents."""
    planned = json.loads(outbox("migrate", "--dry-run", "--json"))
    made = json.loads(outbox("migrate", "--json"))
    paths = {change["path"] for report in made for change in report["changes"]}
    assert {f"accounts/{account.account_id}" for account in NUMBERED} <= paths
    assert [report["changed"] for report in planned] == [report["changed"] for report in made]


async def sent(client: AsyncClient) -> Counter[str]:
    """Messages by account."""
    found: Counter[str] = Counter()
    async for document in client.collection("outbox").where(filter=FieldFilter("status", "==", "sent")).stream():
        found[str(document.get("accountId"))] += 1
    return found


async def nothing() -> None:
    return None


async def done(work: Awaitable[object]) -> None:
    await work
