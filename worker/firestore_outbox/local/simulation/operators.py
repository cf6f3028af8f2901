"""Operators: what they do in a world, drawn from its seed, by the verbs that the command line has.

Each act is a process of its own, as a command line is: its calls get lost like anybody's, and it may be killed between
any two steps. An operator sees what everybody sees when the command is typed; by the time it is carried out, a lane or
a receipt may have been faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from google.api_core.exceptions import GoogleAPICallError

from firestore_outbox.errors import Unavailable
from firestore_outbox.local.simulation.processes import ProcessDied
from firestore_outbox.local.simulation.world import World
from firestore_outbox.operations.settle import SettledAs
from firestore_outbox.wiring import System

VERBS = ("cancel", "pause", "redrive", "redrive", "redrive all", "resume", "settle", "settle", "settle")
_LONGEST_STEPS = 120
"""About as many as the longest of them takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    at: float
    """Seconds from the beginning."""
    verb: str
    dies_after: int | None
    """Steps until it is killed."""


def draw_operators(seed: int, lasts: float) -> tuple[Act, ...]:
    """From a sequence of its own: a world without any is what it was before there were operators."""
    random = Random(f"operators {seed}")
    if random.random() < 0.7:
        return ()
    return tuple(
        Act(
            at=random.uniform(0, lasts),
            verb=random.choice(VERBS),
            dies_after=random.randrange(1, _LONGEST_STEPS) if random.random() < 0.3 else None,
        )
        for _ in range(random.choice((3, 10, 20)))
    )


class Operators:
    def __init__(self, acts: tuple[Act, ...], world: World, random: Random) -> None:
        self._acts = acts
        self._world = world
        self._random = random

    async def work(self) -> None:
        await asyncio.gather(*(self._act(act) for act in self._acts))

    async def _act(self, act: Act) -> None:
        await asyncio.sleep(act.at)
        on = self._choose(act.verb)
        if on is None:
            return
        machine = self._world.machine("operator")
        self._world.truth.note(f"{machine.process.name}: {act.verb} {on}")
        if act.dies_after is not None:
            machine.process.after_steps(act.dies_after, lambda: self._world.kill(machine))
        known = len(self._world.truth.changes)
        with suppress(ProcessDied, Unavailable, GoogleAPICallError):
            await machine.process.serve(self._carry_out(act.verb, on, machine.system))
        if act.verb == "redrive all":  # also what failed while it looked
            self._world.truth.redriven.update(self._failed_since(known, on))

    async def _carry_out(self, verb: str, on: str, system: System) -> None:
        match verb:
            case "cancel":
                await system.cancel(on)
            case "pause":
                await system.pause(on)
            case "resume":
                await system.resume(on)
            case "redrive":
                self._world.truth.redriven.add(on)
                await system.redrive.one(on)
            case "redrive all":
                self._world.truth.redriven.update(self._in("failed", on))
                async for _ in system.redrive.failed_of(on):
                    pass
            case "settle":
                await system.settle(on, self._word_on(on))
            case _:
                raise AssertionError(f"unknown verb {verb}")

    def _word_on(self, request_id: str) -> SettledAs:
        """What an operator finds out who looks at the phone; or no operator looks, and it is given up, as is what was
        put back once: of two sends, who knows which one it is."""
        last = len(self._world.truth.collection("outbox")[request_id]["parts"]) - 1
        calls = self._world.truth.calls
        arrived = any(call.accepted and (call.request_id, call.part) == (request_id, last) for call in calls)
        if arrived and request_id not in self._world.truth.redriven and self._random.random() < 0.8:
            return SettledAs.SENT
        self._world.truth.given_up.add(request_id)
        return SettledAs.FAILED

    def _choose(self, verb: str) -> str | None:
        """The account or the message; None if there is nothing to do it to."""
        match verb:
            case "pause" | "resume" | "redrive all":
                found = sorted(self._world.truth.collection("accounts"))
            case "cancel":
                found = sorted(self._in("queued"))
            case "redrive":
                found = sorted([*self._in("failed"), *self._in("uncertain")])
            case _:
                found = sorted(self._in("uncertain"))
        return self._random.choice(found) if found else None

    def _in(self, status: str, account_id: str | None = None) -> Iterator[str]:
        documents: Any = self._world.truth.collection("outbox").items()
        for request_id, data in documents:
            if data["status"] == status and account_id in (None, data["accountId"]):
                yield request_id

    def _failed_since(self, known: int, account_id: str) -> Iterator[str]:
        """`known`: changes that came before."""
        for seen in self._world.truth.changes[known:]:
            collection, _, request_id = seen.path.partition("/")
            data = seen.data or {}
            if collection == "outbox" and data.get("status") == "failed" and data["accountId"] == account_id:
                yield request_id
