"""The busiest window of a series of writes: the most that fell into any window of one length."""

from __future__ import annotations

from collections import deque

from firestore_emulator.documents import keys

LEAST_TO_JUDGE = 20
"""Entries. Fewer than this in a window may look sorted by chance."""
GROWING_SHARE = 0.8
"""Of values that grow with time nearly all are above one from half a window ago; of random values, half of them."""


class Peak:
    """Writes of one document."""

    __slots__ = ("_times", "at_micros", "most")

    def __init__(self) -> None:
        self._times: deque[int] = deque()
        self.most = 0
        """Writes in the busiest window so far."""
        self.at_micros = 0
        """When that window ended."""

    def add(self, micros: int, window_micros: int) -> None:
        times = self._times
        times.append(micros)
        while times[0] <= micros - window_micros:
            times.popleft()
        if len(times) > self.most:
            self.most, self.at_micros = len(times), micros

    def is_past(self, micros: int) -> bool:
        """Whether it was last written at or before this time."""
        return not self._times or self._times[-1] <= micros

    def let_go(self) -> None:
        """Keeps the result alone."""
        self._times.clear()


class GrowingPeak:
    """Entries of one index range, counted where they grow with time.

    Each entry is compared with the one that came half of the window's entries before it. If nearly all in a window are
    above theirs, they were written to a place that moves upwards: the newest end of the range.
    """

    __slots__ = ("_entries", "_first", "_rising", "at_micros", "most")

    def __init__(self) -> None:
        self._entries: list[tuple[int, bytes, bool]] = []
        self._first = 0
        """The index of the first entry in the window."""
        self._rising = 0
        self.most = 0
        self.at_micros = 0

    def add(self, micros: int, key: bytes, window_micros: int) -> None:
        entries = self._entries
        self._forget(micros - window_micros)
        count = len(entries) - self._first
        is_rising = count > 0 and _is_above(key, entries[self._first + count // 2][1])
        entries.append((micros, key, is_rising))
        self._rising += is_rising
        count += 1
        if count > self.most and count >= LEAST_TO_JUDGE and self._rising >= GROWING_SHARE * (count - 1):
            self.most, self.at_micros = count, micros

    def _forget(self, until_micros: int) -> None:
        entries, first = self._entries, self._first
        while first < len(entries) and entries[first][0] <= until_micros:
            self._rising -= entries[first][2]
            first += 1
        self._first = first
        if first > 256 and first * 2 > len(entries):
            del entries[:first]
            self._first = 0

    def is_past(self, micros: int) -> bool:
        return not self._entries or self._entries[-1][0] <= micros

    def let_go(self) -> None:
        self._entries.clear()
        self._first = self._rising = 0


def _is_above(key: bytes, earlier: bytes) -> bool:
    """One time for many entries is a time that grows, too: a batch with one server timestamp."""
    return key > earlier or (key == earlier and key[0] == keys.TIMESTAMP)
