"""List prices, in US dollars for a million of each: the one table that every sum in this repository uses.

Google Cloud in us-central1, Firestore Standard edition, free tiers left out, as published on the date below. The table
of docs/deploy.md has the same prices, and a test holds both together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

AS_OF = "2026-11-16"
REGION = "us-central1"


@dataclass(frozen=True)
class Prices:
    """Dollars for a million."""

    read: float = 0.30
    write: float = 0.90
    delete: float = 0.10
    task_operation: float = 0.40
    """Making a task is one, and each attempt of it another."""
    request: float = 0.40
    """A call of a function or of the worker, without the time that it takes."""
    vcpu_second: float = 24.0
    gib_second: float = 2.5

    @property
    def instance_second(self) -> float:
        """Of the instances that docs/deploy.md deploys: a vCPU and half a GiB."""
        return self.vcpu_second + 0.5 * self.gib_second


LIST = Prices()


@dataclass(frozen=True)
class Bill:
    """What something used, as Google counts it."""

    reads: float = 0.0
    writes: float = 0.0
    deletes: float = 0.0
    tasks: float = 0.0
    """Made, and each tried once."""
    invocations: float = 0.0
    """Calls of functions and of the worker."""

    def each(self, count: float) -> Bill:
        return Bill(**{name: used / count for name, used in asdict(self).items()})

    @property
    def dollars_for_a_million(self) -> float:
        """Of what this is the bill of. The time that instances run is not in it: it depends on what they share."""
        return (
            self.reads * LIST.read
            + self.writes * LIST.write
            + self.deletes * LIST.delete
            + self.tasks * 2 * LIST.task_operation
            + self.invocations * LIST.request
        )

    @property
    def dollars(self) -> float:
        return self.dollars_for_a_million / 1e6


def shown() -> dict[str, object]:
    """For a result: the prices that its sums were made with."""
    return {"asOf": AS_OF, "region": REGION, "dollarsAMillion": asdict(LIST)}
