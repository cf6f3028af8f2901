"""The end of a run's window: a task that the run enqueues for itself, and what happens when it comes.

The run's own lane looks a little later (`SECOND_LOOK`), should the task be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.clock import Clock
from firestore_outbox.lane.ref import run_lane
from firestore_outbox.lane.tasks import Tasks
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders.run import ENDED, Run
from firestore_outbox.reminders.store import RunStore

WINDOW_END_TASK = "/tasks/window-end"


@dataclass(frozen=True, slots=True)
class WindowEnd:
    runs: RunStore
    waker: Waker
    tasks: Tasks
    clock: Clock

    async def announce(self, run: Run, at: datetime) -> None:
        """Enqueue the task for the end of the run's window, unless that has passed."""
        if at > self.clock():
            await self.tasks.enqueue(WINDOW_END_TASK, {"runId": run.run_id}, at)

    async def has_come(self, run_id: str) -> bool:
        """Wake the run's lane, which skips or defers what is left. False: the run has ended, or does not exist.

        The task may come early: by another clock than ours, on a hop to a far time, or after the run moved to the next
        day. The lane is then due at the end of the window and not before.
        """
        stored = await self.runs.run(run_id)
        if stored is None or stored.run.status in ENDED:
            return False
        await self.waker.wake(run_lane(run_id), stored.run.window_end_at)
        return True
