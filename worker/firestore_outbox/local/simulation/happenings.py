"""What goes wrong in a world: crashes, stalls, clocks that jump, a provider that refuses. One method each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulation.scenario import Scenario
from firestore_outbox.local.simulation.world import Machine, World
from firestore_outbox.local.simulators.core import Account
from firestore_outbox.local.simulators.faults import Faults


class Happenings:
    def __init__(self, scenario: Scenario, world: World, random: Random) -> None:
        self._scenario = scenario
        self._world = world
        self._random = random
        self.is_calm = False
        """From then on no machine fails."""

    async def happen(self) -> None:
        began = self._world.loop.time()
        for happening in self._scenario.happenings:
            await asyncio.sleep(max(0.0, began + happening.at - self._world.loop.time()))
            shown = " ".join(_shown(argument) for argument in happening.arguments)
            self._world.truth.note(f"{happening.what} {shown}".strip())
            await getattr(self, happening.what)(*happening.arguments)
        await asyncio.sleep(max(0.0, began + self._scenario.lasts - self._world.loop.time()))

    async def crash_worker(self, after_steps: int | None) -> None:
        self._strike(self._world.workers, after_steps, self._kill)

    async def crash_functions(self, after_steps: int | None) -> None:
        self._strike(self._world.functions, after_steps, self._kill)

    async def stall_worker(self, after_steps: int | None, seconds: float) -> None:
        self._stall(self._world.workers, after_steps, seconds)

    async def stall_functions(self, after_steps: int | None, seconds: float) -> None:
        self._stall(self._world.functions, after_steps, seconds)

    def _stall(self, machines: list[Machine], after_steps: int | None, seconds: float) -> None:
        def stall(machines: list[Machine], victim: Machine) -> None:
            self._world.truth.note(f"{victim.process.name} stalls for {seconds} s")
            victim.process.pause()
            self._world.loop.call_later(seconds, victim.process.go_on)

        self._strike(machines, after_steps, stall)

    def _strike(
        self, machines: list[Machine], after_steps: int | None, strike: Callable[[list[Machine], Machine], None]
    ) -> None:
        """Now, or when the victim has taken this number of further steps."""
        victim = self._random.choice(machines)

        def struck() -> None:
            if not self.is_calm:
                strike(machines, victim)

        if after_steps is None:
            struck()
        else:
            victim.process.after_steps(after_steps, struck)

    def _kill(self, machines: list[Machine], victim: Machine) -> None:
        if victim in machines:
            self._world.crash(machines, machines.index(victim))
            self._world.truth.note(f"{victim.process.name} is dead")

    async def jump_clock(self, seconds: float) -> None:
        machine: Machine = self._random.choice(self._world.workers)
        machine.clock.skew += timedelta(seconds=seconds)

    async def provider_faults(self, faults: Faults) -> None:
        self._world.provider.faults = faults

    async def provider_unreachable(self, unreachable: bool) -> None:
        self._world.transport.refuses_connections = unreachable

    async def credentials(self, account_id: str, state: Any) -> None:
        before = self._world.provider.account(account_id)
        self._world.provider.set_account(account_id, Account(credentials=state, provider=before.provider))

    async def set_account(self, account_id: str, status: str) -> None:
        await self._world.client.system.gateway.commit(
            [update(paths.account(account_id), {"status": status}, version=None)]
        )
        if status == "active" and self._random.random() < 0.5:  # otherwise the sweep finds out
            await self._world.client.system.waker.wake(outbox_lane(account_id))

    async def inbound(self, account_id: str, sender: str, text: str = "hello") -> None:
        world = self._world
        provider = next(account.provider for account in self._scenario.accounts if account.account_id == account_id)
        event = {
            "type": "inbound",
            "providerMessageId": world.provider.new_message_id(),
            "from": sender,
            "at": world.clock().isoformat(),
            "parts": [{"type": "text", "text": text}],
        }
        for _ in range(self._random.choice((1, 1, 2))):
            world.webhooks.post(provider, account_id, event)


def _shown(argument: Any) -> str:
    return argument.model_dump_json(exclude_defaults=True) if isinstance(argument, Faults) else str(argument)
