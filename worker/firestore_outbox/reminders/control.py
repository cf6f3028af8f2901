"""What people ask of a run: pause, resume, cancel, and to try again what failed."""

from __future__ import annotations

from dataclasses import dataclass

from firestore_outbox.accounts.window import next_open, window_end_at
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.lane.ref import run_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.looks import SECOND_LOOK, RandomId
from firestore_outbox.reminders.run import ENDED, Command, Run, accepts
from firestore_outbox.reminders.store import RunStore


@dataclass(frozen=True, slots=True)
class Taken:
    """It is written down, and will be carried out."""

    run_id: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    sentence: str


@dataclass(frozen=True, slots=True)
class Control:
    runs: RunStore
    messages: MessageStore
    waker: Waker
    clock: Clock
    random_id: RandomId

    async def ask(self, run_id: str, command: Command) -> Taken | NotTaken:
        async def attempt() -> Taken | NotTaken | Again:
            stored = await self.runs.run(run_id)
            if stored is None:
                return NotTaken(f"there is no run {run_id}")
            if (objection := accepts(stored.run, command)) is not None:
                return NotTaken(objection)
            return Taken(run_id) if await self.runs.write(stored, {"requested": command.value}) else AGAIN

        try:
            result: Taken | NotTaken = await self.runs.compare_and_set(attempt)
        except Contended:
            return NotTaken("the run is being changed by others; try again")
        if isinstance(result, Taken):
            await self.waker.wake(run_lane(run_id))
        return result

    async def retry_failed(self, run_id: str) -> Taken | NotTaken:
        """A new run of the targets that failed, in the window of now."""
        stored = await self.runs.run(run_id)
        if stored is None:
            return NotTaken(f"there is no run {run_id}")
        if stored.run.status not in ENDED:
            return NotTaken(f"the run has not ended yet ({stored.run.status})")
        if not await self.messages.of_run(run_id, OutboxStatus.FAILED, 1):
            return NotTaken("no target of this run has failed")
        again = self._again(stored.run)
        await self.waker.wake(run_lane(again.run_id), self.clock() + SECOND_LOOK)
        if not await self.runs.create(again):
            return NotTaken(f"it is being tried again already, as {again.run_id}")
        await self.waker.wake(run_lane(again.run_id))
        return Taken(again.run_id)

    def _again(self, run: Run) -> Run:
        now = self.clock()
        return Run(
            run_id=f"{run.run_id}-again",
            account_id=run.account_id,
            parts=run.parts,
            window=run.window,
            on_window_end=run.on_window_end,
            fire_at=now,
            reminder_id=run.reminder_id,
            is_personal=run.is_personal,
            category=run.category,
            seed=self.random_id(),
            retry_of=run.run_id,
            window_end_at=window_end_at(run.window, next_open(run.window, now)),
        )
