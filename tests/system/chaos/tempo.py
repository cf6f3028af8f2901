"""How long things last in a run. Production's times for ten minutes; shorter runs shrink them together.

A run of a minute with leases of a minute would show nothing: no worker would ever take over. So lease, waits, pauses
and jumps of the clock keep their proportions: a clock jumps by half a lease, a pause outlasts a lease.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.patience import PATIENCE_SECONDS

PRODUCTION_LEASE_SECONDS = 60.0
SHORTEST_LEASE_SECONDS = 5.0
FULL_MINUTES = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempo:
    lease_seconds: float

    @property
    def jump_seconds(self) -> float:
        """30 s of 60: more than the 5 s that two clocks may differ by, and less than a lease."""
        return self.lease_seconds / 2

    @property
    def pause_seconds(self) -> float:
        """Long enough for others to take over what the paused one holds."""
        return self.lease_seconds * 1.2

    @property
    def longest_cut_seconds(self) -> float:
        """Also beyond the time that a provider's answer may take."""
        return min(8.0, self.lease_seconds * 0.6)

    @property
    def uncertain_seconds(self) -> float:
        return self.lease_seconds * 2

    @property
    def sweep_seconds(self) -> float:
        return max(2.0, self.lease_seconds / 2)

    @property
    def patience_seconds(self) -> float:
        """Ends a run that hangs. From the last fault until everything is at rest it takes a lease with a clock that was
        ahead, a sweep, the wait for a receipt, and retries: a fraction of this, also on a loaded machine."""
        return PATIENCE_SECONDS + 10 * self.lease_seconds

    @property
    def environment(self) -> dict[str, str]:
        """The settings of functions and workers that follow from it."""
        return {
            "OUTBOX_LEASE_SECONDS": f"{self.lease_seconds:g}",
            "OUTBOX_SEND_TIMEOUT_SECONDS": f"{min(20.0, self.lease_seconds / 3):g}",
            "OUTBOX_UNCERTAIN_SECONDS": f"{self.uncertain_seconds:g}",
            "OUTBOX_BACKOFF_MAX_SECONDS": f"{max(2.0, self.lease_seconds):g}",
            "OUTBOX_QUANTUM_SECONDS": f"{self.lease_seconds / 6:g}",
        }


def tempo_of(minutes: float) -> Tempo:
    lease = PRODUCTION_LEASE_SECONDS * min(1.0, minutes / FULL_MINUTES)
    return Tempo(lease_seconds=max(SHORTEST_LEASE_SECONDS, lease))
