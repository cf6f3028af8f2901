"""Where production would be slow: documents that are written often, and index ranges whose newest end takes all writes.

Production takes about one write a second of a document in the long run, and about 500 writes a second of an index
range whose values grow with time. No emulator has these limits, so a test cannot run into them; this meter tells how
near it came. It counts in windows of one length by the time of the commits, so it works in virtual time, and reports
the busiest window of each document and range.

It is off until it is started, and costs nothing then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from firestore_emulator.documents.names import Location
from firestore_emulator.meters.index_ranges import IndexRange, written_entries
from firestore_emulator.meters.shown_keys import shown_key
from firestore_emulator.meters.windows import GrowingPeak, Peak
from firestore_emulator.queries.indexes import IndexRules

WINDOW_SECONDS = 60.0
MOST_KEPT = 10_000
"""Documents, and ranges, that are remembered after their last write; the busiest stay."""

K = TypeVar("K", Location, IndexRange)
P = TypeVar("P", Peak, GrowingPeak)
Observers = list[Callable[[Sequence[Any], int], None]]
"""Called with the changes of each commit, and its time in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRate:
    name: str
    writes: int
    """In the busiest window."""
    per_second: float
    at_micros: int
    """When that window ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRate:
    database: str
    collection: str
    """Its path; its id alone, if the index spans all collections of that id."""
    is_group: bool
    index: tuple[str, ...]
    """The fields of the index."""
    field: str
    """The one whose values grow with time."""
    behind: tuple[str, ...]
    """The values of the fields before it."""
    writes: int
    per_second: float
    at_micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSpots:
    """The busiest first."""

    is_counting: bool
    window_seconds: float
    documents: tuple[DocumentRate, ...]
    ranges: tuple[RangeRate, ...]


class HotSpotMeter:
    def __init__(self, observers: Observers, index_rules: IndexRules | None) -> None:
        self._observers = observers
        self._index_rules = index_rules
        self._window_micros = int(WINDOW_SECONDS * 1_000_000)
        self._documents: dict[Location, Peak] = {}
        self._ranges: dict[IndexRange, GrowingPeak] = {}
        self._next_sweep = 0
        self.is_counting = False

    def start(self, window_seconds: float = WINDOW_SECONDS) -> None:
        """Counts from now on, from zero if it counts already."""
        if window_seconds <= 0:
            raise ValueError("the window must be longer than zero seconds")
        self._window_micros = round(window_seconds * 1_000_000)
        self.reset()
        if not self.is_counting:
            self.is_counting = True
            self._observers.append(self._committed)

    def stop(self) -> None:
        """What was counted can still be read."""
        if self.is_counting:
            self.is_counting = False
            self._observers.remove(self._committed)

    def reset(self, project: str | None = None) -> None:
        """Forgets what was counted in a project; None: in all."""
        self._documents = {one: peak for one, peak in self._documents.items() if _is_other(one.database, project)}
        self._ranges = {one: peak for one, peak in self._ranges.items() if _is_other(one.database, project)}

    def report(self, project: str | None = None, most: int = 20) -> HotSpots:
        """Of a project, or of all, at most `most` documents and ranges."""
        return HotSpots(
            is_counting=self.is_counting,
            window_seconds=self._window_micros / 1_000_000,
            documents=tuple(
                DocumentRate(
                    name=location.name, writes=peak.most, per_second=self._rate(peak), at_micros=peak.at_micros
                )
                for location, peak in _busiest(self._documents, project, most)
            ),
            ranges=tuple(self._shown(range_, peak) for range_, peak in _busiest(self._ranges, project, most)),
        )

    def _shown(self, range_: IndexRange, peak: GrowingPeak) -> RangeRate:
        return RangeRate(
            database=range_.database,
            collection=range_.collection,
            is_group=range_.is_group,
            index=range_.fields,
            field=range_.fields[range_.position],
            behind=tuple(map(shown_key, range_.prefix)),
            writes=peak.most,
            per_second=self._rate(peak),
            at_micros=peak.at_micros,
        )

    def _rate(self, peak: Peak | GrowingPeak) -> float:
        return peak.most * 1_000_000 / self._window_micros

    def _committed(self, changes: Sequence[Any], micros: int) -> None:
        window = self._window_micros
        for location, old, new in changes:
            document = self._documents.get(location)
            if document is None:
                document = self._documents[location] = Peak()
            document.add(micros, window)
            if new is None:
                continue
            for range_, key in written_entries(location, old, new, self._index_rules):
                peak = self._ranges.get(range_)
                if peak is None:
                    peak = self._ranges[range_] = GrowingPeak()
                peak.add(micros, key, window)
        if micros >= self._next_sweep:
            self._next_sweep = micros + window
            self._documents = _swept(self._documents, micros - window, least=2)
            self._ranges = _swept(self._ranges, micros - window, least=1)


def _is_other(database: str, project: str | None) -> bool:
    return project is not None and database.split("/", 2)[1] != project


def _busiest(peaks: dict[K, P], project: str | None, most: int) -> list[tuple[K, P]]:
    mine = ((key, peak) for key, peak in peaks.items() if peak.most and not _is_other(key.database, project))
    return heapq.nlargest(most, mine, key=lambda item: (item[1].most, -item[1].at_micros))


def _swept(peaks: dict[K, P], past_micros: int, least: int) -> dict[K, P]:
    """Without what is not written any more and was never busy."""
    kept: dict[K, P] = {}
    past: list[tuple[K, P]] = []
    for key, peak in peaks.items():
        if not peak.is_past(past_micros):
            kept[key] = peak
        elif peak.most >= least:
            peak.let_go()
            past.append((key, peak))
    return kept | dict(heapq.nlargest(MOST_KEPT, past, key=lambda item: item[1].most))
