"""The states of a lane, and what each event makes of them. lane/state.py decides which event it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class LaneState(StrEnum):
    IDLE = "idle"
    READY = "ready"
    RUNNING = "running"


class LaneEvent(StrEnum):
    WAKE = "wake"
    """There is work for now."""
    WAKE_LATER = "wake_later"
    """There is work for a later time."""
    ACQUIRE = "acquire"
    """A worker takes the lane; the fence grows. On a running lane whose lease has expired: a takeover."""
    RENEW = "renew"
    FAIL = "fail"
    """The handler raised an error: the lease moves to the next try."""
    REQUEUE = "requeue"
    """The holder releases the lane with work left: it goes to the tail of the queue."""
    REST = "rest"
    """The holder releases the lane with nothing to do now."""


_S, _E = LaneState, LaneEvent

TRANSITIONS: Mapping[tuple[LaneState, LaneEvent], LaneState] = {
    (_S.IDLE, _E.WAKE): _S.READY,
    (_S.IDLE, _E.WAKE_LATER): _S.IDLE,
    (_S.IDLE, _E.ACQUIRE): _S.RUNNING,  # nextDueAt has come
    (_S.READY, _E.WAKE): _S.READY,  # a debounce moves dueAt
    (_S.READY, _E.WAKE_LATER): _S.READY,
    (_S.READY, _E.ACQUIRE): _S.RUNNING,
    (_S.RUNNING, _E.WAKE): _S.RUNNING,  # rerunRequested
    (_S.RUNNING, _E.WAKE_LATER): _S.RUNNING,
    (_S.RUNNING, _E.ACQUIRE): _S.RUNNING,
    (_S.RUNNING, _E.RENEW): _S.RUNNING,
    (_S.RUNNING, _E.FAIL): _S.RUNNING,
    (_S.RUNNING, _E.REQUEUE): _S.READY,
    (_S.RUNNING, _E.REST): _S.IDLE,
}
