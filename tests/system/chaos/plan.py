"""Which faults happen when, drawn from a seed before anything starts.

The same seed gives the same plan. What the processes do in between is theirs: real ones cannot be replayed further.

Kinds are dealt from a shuffled deck and not drawn one by one, so that a short run has every one of them. At any time
one worker at most is paused, and one at most has a wrong clock: two clocks that are wrong in opposite ways differ by a
whole lease, which no guarantee covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from random import Random
from typing import TypeVar

from tests.system.chaos.tempo import Tempo

T = TypeVar("T")

WORKERS = ("worker-1", "worker-2", "worker-3")
OTHERS = ("functions", "tasks", "firestore")
KILL_EVERY_SECONDS = (2.0, 5.0)
CUT_EVERY_SECONDS = (2.5, 6.0)
SHORTEST_CUT_SECONDS = 0.3


class Manner(StrEnum):
    """How a connection between two parts fails."""

    REFUSE = "refuse"
    """What is open is cut, and nothing new is let in."""
    STALL = "stall"
    """Nothing passes; in the end it arrives, late, also if its sender has hung up meanwhile."""
    MUTE = "mute"
    """What is asked arrives, and its answer never comes."""


@dataclass(frozen=True, slots=True)
class Kill:
    """kill -9, and a new start at once."""

    at: float
    """Seconds since the first fault may come. The same in each."""
    part: str


@dataclass(frozen=True, slots=True)
class Pause:
    """SIGSTOP, and SIGCONT after so long."""

    at: float
    part: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    at: float
    link: str
    manner: Manner
    seconds: float


@dataclass(frozen=True, slots=True)
class Jump:
    """The part's clock is so much ahead of the right time from now on; 0 sets it right."""

    at: float
    part: str
    ahead_seconds: float


Fault = Kill | Pause | Cut | Jump


def plan(seed: int, seconds: float, tempo: Tempo, links: Sequence[str]) -> tuple[Fault, ...]:
    random = Random(seed)
    pauses = list(_pauses(random, seconds, tempo))
    faults: list[Fault] = [*pauses]
    faults += _kills(random, seconds, pauses)
    faults += _cuts(random, seconds, tempo, links)
    faults += _jumps(random, seconds, tempo)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _pauses(random: Random, seconds: float, tempo: Tempo) -> Iterator[Pause]:
    workers = _dealt(WORKERS, random)
    at = random.uniform(0.05, 0.15) * seconds
    while at + tempo.pause_seconds < seconds:
        yield Pause(at, next(workers), tempo.pause_seconds)
        at += tempo.pause_seconds * random.uniform(1.3, 2.0)


def _kills(random: Random, seconds: float, pauses: Sequence[Pause]) -> Iterator[Kill]:
    first = random.sample((random.choice(WORKERS), *OTHERS), 1 + len(OTHERS))  # a short run has time for little more
    parts = chain(first, _dealt((*WORKERS, *OTHERS), random))
    at = random.uniform(*KILL_EVERY_SECONDS)
    while at < seconds:
        part = next(parts)
        if any(one.part == part and one.at - 2 < at < one.at + one.seconds + 1 for one in pauses):
            part = random.choice([worker for worker in WORKERS if worker != part])  # it must live to be continued
        yield Kill(at, part)
        at += random.uniform(*KILL_EVERY_SECONDS)


def _cuts(random: Random, seconds: float, tempo: Tempo, links: Sequence[str]) -> Iterator[Cut]:
    manners, chosen = _dealt(tuple(Manner), random), _dealt(links, random)
    at = random.uniform(1.0, 2.0)
    while at < seconds:
        lasts = random.uniform(SHORTEST_CUT_SECONDS, tempo.longest_cut_seconds)
        yield Cut(at, next(chosen), next(manners), min(lasts, seconds - at))
        at += random.uniform(*CUT_EVERY_SECONDS)


def _jumps(random: Random, seconds: float, tempo: Tempo) -> Iterator[Jump]:
    """Ahead or behind, and right again before the next one; both directions, of each worker in turn."""
    workers, signs = _dealt(WORKERS, random), _dealt((1.0, -1.0), random)
    count = max(2, round(seconds / (2.5 * tempo.lease_seconds)))
    edges = [seconds * (number + random.uniform(0.1, 0.3)) / count for number in range(count)] + [seconds]
    for begins, next_begins in pairwise(edges):
        worker = next(workers)
        yield Jump(begins, worker, next(signs) * tempo.jump_seconds)
        yield Jump(begins + (next_begins - begins) * random.uniform(0.4, 0.8), worker, 0.0)


def _dealt(cards: Sequence[T], random: Random) -> Iterator[T]:
    """For ever: each card once, in any order, and then again."""
    while True:
        deck = list(cards)
        random.shuffle(deck)
        yield from deck
