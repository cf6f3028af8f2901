"""Is there an order of these transactions, one after the other, that explains what each of them read?

Strict serializability: the order must also keep to real time, so that a transaction that began after another had ended
comes after it. The order is searched for. Commit times are the first candidate, and if the server keeps its word the
search never turns back; without them it is still complete, as every other order that real time allows is tried too.
A transaction that writes nothing is placed as soon as it fits, since it can stand in no other's way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_STATES = 200_000


class Doc(NamedTuple):
    version: int
    """No two writes write the same."""
    group: int
    """What queries ask for."""


State = Mapping[str, Doc]


@dataclass(frozen=True)
class Committed:
    """A transaction, as its client saw it."""

    name: str
    began: float
    """Before its first request was sent."""
    ended: float
    """After its last answer had come."""
    got: Mapping[str, Doc | None]
    """Documents that were read by name; None: there was none."""
    found: Mapping[int, Mapping[str, Doc]]
    """The whole result of a query, by the group that was asked for."""
    counted: Mapping[int, int]
    wrote: Mapping[str, Doc | None]
    """None: deleted."""
    commit_micros: int | None = None
    """None: nothing was written, or that is unknown."""

    def fits(self, state: State) -> bool:
        return (
            all(state.get(path) == doc for path, doc in self.got.items())
            and all(_group(state, group) == docs for group, docs in self.found.items())
            and all(len(_group(state, group)) == count for group, count in self.counted.items())
        )

    def after(self, state: State) -> State:
        changed = {**state, **self.wrote}
        return {path: doc for path, doc in changed.items() if doc is not None}


def _group(state: State, group: int) -> dict[str, Doc]:
    return {path: doc for path, doc in state.items() if doc.group == group}


class NotSerializable(AssertionError):
    """No order explains the history; the message shows how far one came."""


def serial_order(initial: State, history: Sequence[Committed]) -> list[str]:
    """The names of the transactions in an order that explains them all. Raises NotSerializable if there is none."""
    return _Search(history).run(initial)


class _Search:
    def __init__(self, history: Sequence[Committed]) -> None:
        self._all = sorted(history, key=lambda one: (one.commit_micros is None, one.commit_micros or 0, one.ended))
        self._dead_ends: set[tuple[frozenset[int], tuple[tuple[str, Doc], ...]]] = set()
        self._furthest: tuple[list[str], State, list[Committed]] = ([], {}, list(self._all))

    def run(self, initial: State) -> list[str]:
        order = self._from(initial, frozenset(range(len(self._all))), [])
        if order is None:
            raise NotSerializable(self._report())
        return order

    def _from(self, state: State, left: frozenset[int], order: list[str]) -> list[str] | None:
        left, order = self._with_readers(state, left, order)
        if not left:
            return order
        if len(order) >= len(self._furthest[0]):
            self._furthest = (order, state, [self._all[index] for index in sorted(left)])
        known = (left, tuple(sorted(state.items())))
        if known in self._dead_ends:
            return None
        if len(self._dead_ends) >= MOST_STATES:
            raise NotSerializable(f"undecided after {MOST_STATES} states. {self._report()}")
        for index in self._next(left):
            one = self._all[index]
            if one.wrote and one.fits(state):
                found = self._from(one.after(state), left - {index}, [*order, one.name])
                if found is not None:
                    return found
        self._dead_ends.add(known)
        return None

    def _with_readers(self, state: State, left: frozenset[int], order: list[str]) -> tuple[frozenset[int], list[str]]:
        while placed := [i for i in self._next(left) if not self._all[i].wrote and self._all[i].fits(state)]:
            left = left.difference(placed)
            order = [*order, *(self._all[index].name for index in placed)]
        return left, order

    def _next(self, left: frozenset[int]) -> list[int]:
        """Those that real time allows to come next: they began before any that is left had ended."""
        first_end = min((self._all[index].ended for index in left), default=0.0)
        return [index for index in sorted(left) if self._all[index].began <= first_end]

    def _report(self) -> str:
        order, state, left = self._furthest
        first_end = min(one.ended for one in left)
        waiting = "\n".join(f"  {one}" for one in left if one.began <= first_end)
        reached = f"After {order} the state is {dict(state)}"
        return f"No order explains the history. {reached}, and none of these leads on:\n{waiting}"
