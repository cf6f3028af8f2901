"""`POST /tasks/*`: what a task asks for, and how it is answered. The one implementation.

The Cloud Run service (app.py) checks the caller and reads the body before it asks here; the simulation and the tests
deliver their tasks here as well.

    200  done, or handed on; or a body that no retry can repair, which is logged and dropped
    503  try again, here or at another worker
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox import log
from firestore_outbox.errors import Unavailable
from firestore_outbox.lane.engine import Failed, LaneEngine, NotHeld
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.requests import OpenRequests
from firestore_outbox.lane.tasks import RECEIPT_TASK
from firestore_outbox.lane.wake import LANE_TASK, Waker
from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.operations.sweep import Sweep
from firestore_outbox.receipts.late import BadBatch, LateReceipts, parse_batch
from firestore_outbox.reminders.window_end import WINDOW_END_TASK, WindowEnd
from firestore_outbox.wiring import System

SWEEP_TASK = "/tasks/sweep"
RETRY_COUNT = "x-cloudtasks-taskretrycount"

Work = Callable[[dict[str, Any], bool], Awaitable[dict[str, Any]]]
"""Given the body, and whether an earlier attempt at the same task failed."""


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    status: int
    body: dict[str, Any]


class BadTask(ValueError):
    """A body that a retry cannot repair."""


class SweepFailed(Unavailable):
    """Some steps of a sweep failed. The caller learns it by a 503: Cloud Scheduler counts and shows those."""


class Stopping(Exception):
    """This worker is about to end, and starts nothing new."""


class TaskEndpoint:
    def __init__(self, work: Mapping[str, Work]) -> None:
        """`work`: by path."""
        self._work = work

    @classmethod
    def of(cls, system: System, is_stopping: Callable[[], bool] | None = None) -> TaskEndpoint:
        """All paths. `is_stopping`: whether the worker has begun to stop; None asks the lane engine."""
        return cls(
            {
                LANE_TASK: lane_work(system.requests, system.engine, system.waker, is_stopping),
                WINDOW_END_TASK: window_end_work(system.window_end),
                RECEIPT_TASK: receipt_work(system.late_receipts),
                SWEEP_TASK: sweep_work(system.sweep),
            }
        )

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._work)

    async def answer(self, path: str, data: bytes, headers: Mapping[str, str]) -> TaskAnswer:
        """To a task that came whole, from a caller who may send it."""
        is_retry = any(name.lower() == RETRY_COUNT and value != "0" for name, value in headers.items())
        try:
            return TaskAnswer(200, await self._work[path](_body(data), is_retry))
        except BadTask as error:
            return self.dropped(str(error))
        except Unavailable as error:
            return TaskAnswer(503, {"error": str(error)})
        except Stopping:
            return TaskAnswer(503, {"error": "this worker is stopping"})

    def dropped(self, reason: str) -> TaskAnswer:
        """To a task that cannot be understood, however often it comes."""
        log.bad_task(reason)
        return TaskAnswer(200, {"dropped": reason})


def lane_work(
    requests: OpenRequests, engine: LaneEngine, waker: Waker, is_stopping: Callable[[], bool] | None = None
) -> Work:
    def stopping() -> bool:
        return engine.is_stopping if is_stopping is None else is_stopping()

    async def run_lane(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        ref = _lane(body, engine)
        ran = NotHeld(None) if stopping() else await requests.run(ref)
        if isinstance(ran, NotHeld) and stopping():
            raise Stopping  # a 200 would lose the task, and with it a minute until the sweep
        if isinstance(ran, NotHeld) and is_retry and ran.until is not None:
            # The worker that had this task may have died with the lane in hand: look again when its lease ends.
            await waker.enqueue(ref, ran.until)
        if isinstance(ran, Failed):
            return {"held": True, "failed": True}  # handed on: a task comes for the next try
        return {"held": not isinstance(ran, NotHeld)}

    return run_lane


def window_end_work(window_end: WindowEnd) -> Work:
    async def end_window(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        run_id = body.get("runId")
        if not isinstance(run_id, str) or not is_document_id(run_id):
            raise BadTask("a window-end task needs a runId")
        return {"woken": await window_end.has_come(run_id)}

    return end_window


def receipt_work(late_receipts: LateReceipts) -> Work:
    async def look_at_receipts(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        try:
            batch = parse_batch(body)
        except BadBatch as error:
            raise BadTask(str(error)) from None
        except Exception as error:  # noqa: BLE001 - the border: Cloud Tasks would send the same body for ever
            raise BadTask(f"a receipt task cannot be read ({type(error).__name__})") from None
        return {"unknown": await late_receipts.run(batch)}

    return look_at_receipts


def sweep_work(sweep: Sweep) -> Work:
    """What Cloud Scheduler asks for each minute."""

    async def run_sweep(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        swept = await sweep.run()
        if swept.failed:
            raise SweepFailed(f"steps of the sweep failed: {', '.join(swept.failed)}; the log has each error")
        return {"lanes": swept.lanes, "accounts": swept.accounts}

    return run_sweep


def _lane(body: dict[str, Any], engine: LaneEngine) -> LaneRef:
    kind, key = body.get("kind"), body.get("key")
    if not isinstance(kind, str) or not isinstance(key, str):
        raise BadTask("a lane task needs a kind and a key")
    if kind not in engine.handlers:
        raise BadTask(f"there are no lanes of kind {kind[:40]!r}")
    if not key or not is_document_id(f"{kind}:{key}"):
        raise BadTask("the key of a lane task is empty, too long, or has a slash or half a surrogate pair in it")
    return LaneRef(kind, key)


def _body(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise BadTask("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadTask("the body is not an object")
    return body
