"""Events for a handler of the user's in a simulated world: who sends them, what the handler does, what must hold.

    handled      every event that was stored is in a successful run or in a dead letter
    one at once  of one key there are never two runs at the same time, if handlers stop when they are cancelled

Events come by HTTP, from a sender that repeats a call until it is answered, and as documents, whose trigger Eventarc
delivers at least once, perhaps late, perhaps twice. The handler may be slow, may fail, and may fail for good.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from google.api_core.exceptions import GoogleAPICallError

from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_outbox.errors import Unavailable
from firestore_outbox.firestore.writes import SERVER_TIME, create
from firestore_outbox.handlers.context import Context, Permanent
from firestore_outbox.handlers.ingest import Taken
from firestore_outbox.local.simulation.processes import ProcessDied, current
from firestore_outbox.local.simulation.world import World

KIND = "chores"
_AGAIN_SECONDS = 5.0
"""After this time a sender repeats a call that was not answered."""
_MOST_REPEATS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSpec:
    at: float
    """Seconds from the beginning."""
    event_id: str
    key: str
    is_document: bool
    times: int
    """How often its sender sends it."""


@dataclass(slots=True)
class Run:
    """One call of the handler."""

    key: str
    owner: str
    events: tuple[str, ...]
    began: float
    """On the loop's clock."""
    ended: float | None = None
    """None: its process died in it."""
    succeeded: bool = False


def draw_events(seed: int, lasts: float) -> tuple[EventSpec, ...]:
    """From a sequence of its own, so that worlds without events stay as they were. One world of three has some."""
    random = Random(f"events {seed}")
    if random.random() > 1 / 3:
        return ()
    keys = [f"key-{number}" for number in range(random.choice((1, 2, 4)))]
    bursts = [random.uniform(0, lasts) for _ in range(3)]
    return tuple(
        EventSpec(
            at=random.choice((random.uniform(0, lasts), random.choice(bursts) + random.uniform(0, 0.5))),
            event_id=f"event-{number}",
            key=random.choice(keys),
            is_document=random.random() < 0.4,
            times=random.choice((1, 1, 1, 2)),
        )
        for number in range(random.choice((3, 10, 25)))
    )


def draw_stream(seed: int, commit_delay: CommitDelay | None, lasts: float) -> tuple[EventSpec, ...]:
    """From a sequence of its own. In half of the worlds in which some commits are slow, one key gets ten events a
    second for a while: an event whose commit is slow appears when its lane has handled later ones already."""
    random = Random(f"stream {seed}")
    if commit_delay is None or not commit_delay.slowest or random.random() < 1 / 2:
        return ()
    begins = random.uniform(0, lasts / 2)
    return tuple(
        EventSpec(
            at=begins + number / 10,
            event_id=f"stream-{number:02}",
            key="stream",
            is_document=random.random() < 0.5,
            times=1,
        )
        for number in range(60)
    )


class UserEvents:
    def __init__(self, specs: tuple[EventSpec, ...], seed: int) -> None:
        self._specs = specs
        self._random = Random(f"handler {seed}")
        self.quiet = self._random.choice((0, 2))
        """Seconds of debounce. Without one, a run may begin while events of its burst are not visible yet."""
        self.runs: list[Run] = []
        self.is_calm = False

    # --- senders

    async def send(self, world: World) -> None:
        await asyncio.gather(*(self._send(world, spec) for spec in self._specs))

    async def _send(self, world: World, spec: EventSpec) -> None:
        await asyncio.sleep(spec.at)
        if spec.is_document:
            path = f"inbox/{KIND}:{spec.key}/events/{spec.event_id}"
            await world.client.system.gateway.commit([create(path, {"data": {}, "at": SERVER_TIME})])
            return
        for _ in range(spec.times):
            await self._call(world, spec)

    async def _call(self, world: World, spec: EventSpec) -> None:
        for _ in range(_MOST_REPEATS):
            machine = self._random.choice(world.functions)
            try:
                taken = await machine.process.serve(
                    machine.system.events.event(KIND, spec.event_id, {"key": spec.key}, spec.key)
                )
            except (ProcessDied, GoogleAPICallError, Unavailable):  # no answer, or a 503
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            assert isinstance(taken, Taken), taken
            return

    # --- the user's code

    async def handle(self, context: Context) -> None:
        events = await context.events()
        process = current()
        assert process is not None, "a worker runs it"
        run = Run(context.key, process.name, tuple(one.id for one in events), _now())
        self.runs.append(run)
        try:
            await self._work(context)
            if self._random.random() < 0.3:
                context.yield_after(events[0])
                run.events = run.events[:1]
            run.succeeded = True
        finally:
            run.ended = _now()

    async def _work(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._random.choice((0, 0, 3, 70))
        while not self.is_calm and loop.time() < until:
            if context.is_cancelled:
                raise OSError("the worker stops, or has lost the lane")
            await asyncio.sleep(0.5)
        chance = self._random.random()
        if not self.is_calm and chance < 0.15:
            raise OSError("the application failed")
        if chance > 0.95:
            raise Permanent("no retry repairs this")


def _now() -> float:
    return asyncio.get_running_loop().time()


# --- what must hold


def event_breaches(events: UserEvents, world: World, *, is_steady: bool) -> Iterator[str]:
    latest = world.truth.latest()
    handled = {(run.key, event) for run in events.runs if run.succeeded for event in run.events}
    for job in world.truth.collection("jobs").values():
        if job["kind"] == KIND:
            handled |= {(str(job["key"]), str(event)) for event in job["events"]}
    for path in latest:
        if path.startswith(f"inbox/{KIND}:"):
            _, lane, _, event = path.split("/")
            if (lane.removeprefix(f"{KIND}:"), event) not in handled:
                yield f"handled: {path} is in no successful run and in no dead letter"
    if is_steady:  # clocks agree, and no process freezes in the middle of a run
        yield from _overlaps(events.runs)


def _overlaps(runs: list[Run]) -> Iterator[str]:
    by_key: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_key[run.key].append(run)
    for key, of_key in by_key.items():
        for first, second in pairwise(of_key):
            if first.ended is not None and first.owner != second.owner and second.began < first.ended:
                yield f"one at once: {key} runs on {second.owner} at {second.began} while {first.owner} is not done"
