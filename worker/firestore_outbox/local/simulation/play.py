"""A scenario, played: clients write, people change their minds, operators step in, machines fail; then all rests."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random
from typing import Any

from firestore_outbox.consent.suppressions import Source
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp, create, update
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import INBOUND, reminder_lane
from firestore_outbox.local.simulation.consent import OptOut
from firestore_outbox.local.simulation.happenings import Happenings
from firestore_outbox.local.simulation.operators import Operators
from firestore_outbox.local.simulation.reminders import RESUMES_WITHIN, Asked, ReminderSpec
from firestore_outbox.local.simulation.scenario import MessageSpec, Scenario
from firestore_outbox.local.simulation.user_events import KIND, UserEvents
from firestore_outbox.local.simulation.world import World
from firestore_outbox.local.simulators.faults import NO_FAULTS
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import ENDED, Command

SWEEP_SECONDS = 60.0
LONGEST_REST = timedelta(minutes=40)
"""After the last trouble everything must have ended within this."""


class Play:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._random = Random(f"play {scenario.seed}")
        self._functions_random = Random(f"functions' clocks {scenario.seed}")
        self.events = UserEvents(scenario.events, scenario.seed)
        self.world = World(
            scenario.seed,
            settings=scenario.settings,
            luck=scenario.luck,
            workers=scenario.workers,
            functions=scenario.functions,
            draw_skew=self._skew,
            draw_functions_skew=self._functions_skew,
            handlers={
                INBOUND: Registration(kind=INBOUND, function=self._conversation),
                KIND: Registration(kind=KIND, function=self.events.handle, quiet=self.events.quiet, at_most=10),
            },
            hold_room_bytes=scenario.hold_room_bytes,
            commit_delay=scenario.commit_delay,
        )
        self._gateway = self.world.client.system.gateway
        self._happenings = Happenings(scenario, self.world, self._random)
        self.rested = False
        """Whether it came to rest in time."""

    def _functions_skew(self) -> timedelta:
        return self._scenario.functions_skew * self._functions_random.uniform(-1, 1)

    def _skew(self) -> timedelta:
        return self._scenario.most_skew * self._random.uniform(-1, 1)

    async def run(self) -> None:
        world, scenario = self.world, self._scenario
        await world.start()
        for account in scenario.accounts:
            await self._gateway.commit([create(paths.account(account.account_id), account.fields())])
        background = [asyncio.create_task(self._sweeps())]
        await asyncio.gather(
            *(self._client(message) for message in scenario.messages),
            *(self._remind(reminder) for reminder in scenario.reminders),
            *(self._opt_out(one) for one in scenario.opt_outs),
            Operators(scenario.operators, world, Random(f"operators' choices {scenario.seed}")).work(),
            self.events.send(world),
            self._happenings.happen(),
        )
        await self._calm()
        self.rested = await self._rest()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)

    async def _sweeps(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.world.sweep()

    # --- clients

    async def _client(self, spec: MessageSpec) -> None:
        await asyncio.sleep(spec.at)
        writes = self._batch(spec)
        await self._gateway.commit(writes)
        if spec.again_after is not None:
            await asyncio.sleep(spec.again_after)
            await self._gateway.commit(self._batch(spec))
        if spec.cancel_after is not None:
            await asyncio.sleep(spec.cancel_after)
            self.world.truth.note(f"cancel {spec.request_id}")
            fields = {"cancelRequested": True}
            await self._gateway.commit([update(paths.outbox(spec.request_id), fields, version=None)])

    def _batch(self, spec: MessageSpec) -> list[WriteOp]:
        now = self.world.clock()
        new = NewMessage(
            request_id=spec.request_id,
            account_id=spec.account_id,
            to=spec.to,
            parts=[{"type": "text", "text": f"part {number}"} for number in range(spec.parts)],
            created_by="author",
            send_at=None if spec.send_after is None else now + timedelta(seconds=spec.send_after),
            send_by=None if spec.send_within is None else now + timedelta(seconds=spec.send_within),
            priority=spec.priority,
        )
        writes = batch(new)
        if spec.fault is not None:
            wrong = writes[-1]
            writes[-1] = create(wrong.path, {**wrong.fields, **_MALFORMED[spec.fault]})
        return writes

    async def _opt_out(self, spec: OptOut) -> None:
        await asyncio.sleep(spec.at)
        self.world.truth.note(f"{spec.address} opts out of {spec.account_id}: {spec.word or 'by an operator'}")
        if spec.word is not None:
            await self._happenings.inbound(spec.account_id, spec.address, spec.word)
            return
        await self.world.client.system.suppressions.add(spec.account_id, spec.address, Source.OPERATOR)
        self.world.truth.opted_out.append((self.world.clock(), spec.account_id, spec.address))

    # --- reminders, and what people ask of their runs

    async def _remind(self, spec: ReminderSpec) -> None:
        await asyncio.sleep(spec.at)
        system = self.world.client.system
        await system.runs.add_reminder(spec.reminder_id, spec.fields(self.world.clock()), spec.targets()[1])
        await system.waker.wake(reminder_lane(spec.reminder_id))
        if not await self._has_run(spec):
            return
        waited = 0.0
        for asked in spec.asked:
            await asyncio.sleep(asked.after - waited)
            waited = asked.after
            await self._ask(spec, asked)

    async def _has_run(self, spec: ReminderSpec) -> bool:
        """Once it has. People ask nothing of what is not there."""
        ends = self.world.clock() + timedelta(seconds=self._scenario.lasts)
        while self.world.clock() < ends and spec.asked:
            if self._run_ids(spec.reminder_id):
                return True
            await asyncio.sleep(0.02)
        return False

    async def _ask(self, spec: ReminderSpec, asked: Asked) -> None:
        self.world.truth.note(f"{asked.command} the runs of {spec.reminder_id}")
        for run_id in self._run_ids(spec.reminder_id):
            if asked.command == "retry":
                if spec.is_open(self.world.clock()):  # otherwise it goes out after the last look
                    await self.world.client.system.control.retry_failed(run_id)
            else:
                await self.world.client.system.control.ask(run_id, Command(asked.command))

    def _run_ids(self, reminder_id: str | None = None) -> list[str]:
        return [
            run_id
            for run_id, data in self.world.truth.collection("runs").items()
            if reminder_id in (None, data.get("reminderId"))
        ]

    # --- the user's code

    async def _conversation(self, context: Context) -> None:
        """The user's code. What it does with a conversation may take long, and may fail."""
        self.world.truth.conversations.append((self.world.clock(), context.key))
        if self._scenario.faulty_conversations and not self._happenings.is_calm:
            await asyncio.sleep(self._random.choice((0, 3, 70)))
            if self._random.random() < 0.3:
                raise OSError("the application failed")

    # --- the end

    async def _calm(self) -> None:
        world = self.world
        self._happenings.is_calm = self.events.is_calm = True
        world.truth.note("calm")
        world.network.calm()
        world.provider.faults = NO_FAULTS
        world.transport.refuses_connections = False
        for machine in [*world.workers, *world.functions]:
            machine.process.go_on()
        for account in self._scenario.accounts:
            await self._happenings.credentials(account.account_id, "valid")
            await self._happenings.set_account(account.account_id, "active")
        for spec in self._scenario.reminders:
            if spec.fires_after is None:  # for ever, unless it is stopped
                await world.client.system.change_reminder.set_status(spec.reminder_id, ReminderStatus.PAUSED)
                await world.client.system.waker.wake(reminder_lane(spec.reminder_id))

    async def _rest(self) -> bool:
        ends = self.world.clock() + LONGEST_REST
        if any(spec.resumes for spec in self._scenario.reminders):
            ends += RESUMES_WITHIN
        while self.world.clock() < ends:
            await asyncio.sleep(10)
            if not self._is_busy():
                return True
            for account in self._scenario.accounts:  # a late refusal parks an account that was corrected
                if self.world.truth.latest()[paths.account(account.account_id)]["status"] == "parked":
                    await self._happenings.set_account(account.account_id, "active")
            await self._resume_runs()
        return False

    async def _resume_runs(self) -> None:
        """No run stays paused for ever."""
        for run_id in self._run_ids():
            data = self.world.truth.latest()[paths.run(run_id)]
            if data["status"] not in ENDED and (data["status"] == "paused" or data.get("requested") == "pause"):
                await self.world.client.system.control.ask(run_id, Command.RESUME)

    def _is_busy(self) -> bool:
        """Anything that is still to be sent or settled, and anybody who is still at it."""
        if self.world.webhooks.pending or self.world.undelivered_events:
            return True
        stored = self.world.truth.collection
        return (
            any(lane["state"] != "idle" or lane.get("nextDueAt") is not None for lane in stored("lanes").values())
            or any(_is_open(message) for message in stored("outbox").values())
            or any(run["status"] not in ENDED for run in stored("runs").values())
        )


def _is_open(data: dict[str, Any]) -> bool:
    if data["status"] == "uncertain":
        return data.get("nextAttemptAt") is not None
    return data["status"] in ("queued", "sending")


_MALFORMED: dict[str, dict[str, Any]] = {
    "no parts": {"parts": []},
    "unknown part": {"parts": [{"type": "dance"}]},
    "long text": {"parts": [{"type": "text", "text": "x" * 5000}]},
    "foreign thread": {"threadId": "another__thread"},
    "number as text": {"attempts": "0"},
    "wrong id": {"requestId": "another-request"},
}
