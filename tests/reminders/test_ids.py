"""The ids of a run's targets: not to be guessed, and never lost to a message that stands there already."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp
from firestore_outbox.lane.ref import run_lane
from firestore_outbox.reminders.control import Taken
from firestore_outbox.reminders.expand import MOST_DERIVED
from firestore_outbox.reminders.fire import new_run
from firestore_outbox.reminders.run import Run, request_id_of, run_id_of
from firestore_outbox.reminders.store import RunStore, StoredReminder
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, remind, runs, targets_called, until_ended

EVIL, MINE = "evil", "shop"
SEED = "0123456789abcdef" * 2
LATER = START + timedelta(minutes=10)


async def tenants(calm: Calm) -> None:
    await calm.account(MINE)
    await calm.account(EVIL, status="paused")


async def coming(calm: Calm, targets: int = 10, seed: str | None = SEED) -> Run:
    """The run of a reminder that fires later, with a seed that the test knows."""
    await remind(calm, targets=targets, schedule={"type": "once", "at": START + timedelta(days=1)})
    stored = await RunStore(calm.gateway).reminder("rem")
    assert isinstance(stored, StoredReminder)
    return replace(new_run(stored.reminder, START, START, seed=SEED), seed=seed)


async def start(calm: Calm, run: Run) -> None:
    assert await RunStore(calm.gateway).create(run)
    await calm.world.client.system.waker.wake(run_lane(run.run_id))


def documents(calm: Calm) -> dict[str, dict[str, object]]:
    """Of runs, by requestId."""
    return {name: data for name, data in calm.world.truth.collection("outbox").items() if "runId" in data}


def test_a_message_under_every_id_that_can_be_guessed_takes_no_target_away() -> None:
    """Another account knows the names of the run and of its targets before the reminder fires, and not the seed."""

    async def body(calm: Calm) -> None:
        await tenants(calm)
        await remind(calm, targets=10, schedule={"type": "once", "at": LATER})
        guessed = await coming_without_seed(calm)
        for target in calm.document("reminders/rem")["targets"]:
            await calm.send(request_id_of(guessed, target["id"]), account_id=EVIL)
        await until_ended(calm)
        ended = only_run(calm)
        assert (ended["status"], ended["counts"]["total"], len(ended["seed"])) == ("success", 10, 32)
        assert sum(targets_called(calm).values()) == 10
        made = {request_id_of(replace(guessed, seed=ended["seed"]), f"t{place:05}") for place in range(10)}
        assert documents(calm).keys() == made, "the first id of each target was free"

    simulate(body)


async def coming_without_seed(calm: Calm) -> Run:
    stored = await RunStore(calm.gateway).reminder("rem")
    assert isinstance(stored, StoredReminder)
    run = replace(new_run(stored.reminder, LATER, LATER, seed=SEED), seed=None)
    assert run.run_id == run_id_of("rem", LATER)
    return run


@pytest.mark.parametrize("account_id", [EVIL, MINE], ids=["another account", "a member of the account"])
@pytest.mark.parametrize("depth", [1, 3, MOST_DERIVED + 2])
@pytest.mark.parametrize("seed", [SEED, None], ids=["seed", "no seed"])
def test_a_target_whose_ids_are_taken_gets_another_and_is_sent_to(
    seed: str | None, depth: int, account_id: str
) -> None:
    """A person who can read the seed derives the same ids as the run. The run still has one that is free."""

    async def body(calm: Calm) -> None:
        await tenants(calm)
        run = await coming(calm, seed=seed)
        squatted = [request_id_of(run, f"t{place:05}", number) for place in range(4) for number in range(depth)]
        for request_id in squatted:
            await calm.send(request_id, account_id=account_id)
        await start(calm, run)
        await until_ended(calm)
        ended = only_run(calm)
        assert (ended["status"], ended["counts"]["total"]) == ("success", 10)
        assert {f"{place:05}@g.us": 1 for place in range(10)}.items() <= targets_called(calm).items()
        assert len(documents(calm)) == 10
        assert not set(squatted) & documents(calm).keys(), "what stood there is left alone"

    simulate(body)


def test_a_target_that_is_listed_twice_and_whose_id_is_taken_is_sent_to_once() -> None:
    async def body(calm: Calm) -> None:
        await tenants(calm)
        run = await coming(calm, targets=0)
        targets = [{"id": "twice", "to": "1@g.us"}, {"id": "too", "to": "2@g.us"}]
        await calm.write(
            *(WriteOp(f"{paths.targets('rem')}/{n:06}", {"targets": targets}, masked=False) for n in range(3))
        )
        await calm.send(request_id_of(run, "twice"), account_id=EVIL)
        await start(calm, run)
        await until_ended(calm)
        assert targets_called(calm) == {"1@g.us": 1, "2@g.us": 1}
        assert only_run(calm)["counts"]["total"] == 2

    simulate(body)


def test_a_run_from_before_seeds_is_expanded_with_the_ids_that_it_had() -> None:
    async def body(calm: Calm) -> None:
        await tenants(calm)
        run = await coming(calm, targets=3, seed=None)
        await start(calm, run)
        await until_ended(calm)
        assert documents(calm).keys() == {request_id_of(run, f"t{place:05}") for place in range(3)}
        assert "seed" not in only_run(calm)

    simulate(body)


def test_a_run_that_tries_again_has_a_seed_of_its_own() -> None:
    async def body(calm: Calm) -> None:
        await tenants(calm)
        faults = calm.world.provider.faults
        calm.world.provider.faults = faults.model_copy(update={"invalidRecipients": ("00000@g.us",)})
        await remind(calm, targets=2)
        await until_ended(calm)
        again = await calm.world.client.system.control.retry_failed(only_run(calm)["runId"])
        assert isinstance(again, Taken)
        seeds = [data["seed"] for data in runs(calm).values()]
        assert len(set(seeds)) == len(seeds) == 2

    simulate(body)
