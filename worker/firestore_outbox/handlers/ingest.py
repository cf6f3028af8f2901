"""Events from outside, stored for their handler, whose lane is then woken: by webhook, by `poke`, by document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox import log, metrics
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.wake import Waker

LONGEST_KEY = 700
"""Characters of a key. With its kind before it, a lane's name stays within the 1,500 bytes that Firestore takes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Stored, and the lane is woken."""

    key: str
    is_new: bool
    """False: an event of this id had come before."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The event concerns no key."""


@dataclass(frozen=True, slots=True)
class NotTaken:
    sentence: str


class Ingest:
    def __init__(self, handlers: Mapping[str, Registration], events: EventStore, waker: Waker) -> None:
        self._handlers = handlers
        self._events = events
        self._waker = waker

    async def event(
        self, kind: str, event_id: str, data: Mapping[str, Any], key: str | None = None
    ) -> Taken | Skipped | NotTaken:
        """`key`: None asks the handler's own `key` function."""
        registration = self._handlers.get(kind)
        if registration is None:
            return NotTaken(f"there is no handler for {kind[:60]!r}; OUTBOX_HANDLERS names the modules with handlers")
        found = key if key is not None else _key_of(registration, data)
        if isinstance(found, NotTaken):
            return found
        if not found:
            metrics.handler_run(kind, "skipped")
            log.event_skipped(kind)
            return Skipped()
        if (wrong := fault_in_key(found)) is not None:
            return NotTaken(wrong)
        ref = LaneRef(kind, found)
        is_new = await self._events.add(ref, event_id, data)
        await self._waker.wake(ref)  # always: the process that stored it first may have died before the wake
        log.event_taken(ref, ref.account_id, is_new)
        return Taken(found, is_new)

    async def stored(self, lane_id: str) -> None:
        """A client or a backend wrote an event below `inbox/{lane_id}`."""
        kind, _, key = lane_id.partition(":")
        if kind in self._handlers and key:
            await self._waker.wake(LaneRef(kind, key))

    async def poke(self, kind: str, key: str, event_id: str) -> Taken | Skipped | NotTaken:
        """Run the handler of this key without data."""
        return await self.event(kind, event_id, {}, key)


def _key_of(registration: Registration, data: Mapping[str, Any]) -> str | NotTaken | None:
    if registration.key is None:
        return NotTaken(f"the event names no key, and the handler of {registration.kind!r} has no key function")
    try:
        key = registration.key(data)
    except Exception as error:  # noqa: BLE001 - the border: the user's code, on data from outside
        return NotTaken(f"the key function of {registration.kind!r} failed: {type(error).__name__}")
    if key is not None and not isinstance(key, str):
        return NotTaken(f"the key function of {registration.kind!r} returned a {type(key).__name__}, not a string")
    return key


def fault_in_key(key: str) -> str | None:
    """What is wrong with a key; None: nothing."""
    if not 0 < len(key) <= LONGEST_KEY:
        return f"a key has 1 to {LONGEST_KEY} characters"
    if "/" in key or key in (".", "..") or not key.isprintable():
        return "a key has no slashes and no control characters"
    return None
