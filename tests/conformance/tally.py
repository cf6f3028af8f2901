"""What a run has done, the closing lines that say so, and the verdict on what it left out.

Leaving Google's emulator out is fine on a machine that does not have it, and is said. It is a failure on a machine that
has it, as a suite that quietly judges itself proves nothing; and with OUTBOX_REQUIRE_ALL=1 leaving anything out is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

REQUIRE_ALL = "OUTBOX_REQUIRE_ALL"
BACKENDS = ("grpc", "inprocess", "official")


@dataclass
class Tally:
    ran: Counter[str] = field(default_factory=Counter)
    """Tests, by the Firestore that they ran on."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Tests, by the reason."""
    differential_cases: int = 0
    differential_answers: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Differences that the table of known ones explains, by the reason."""

    def add(self, other: Tally) -> None:
        self.ran += other.ran
        self.left_out += other.left_out
        self.differential_cases += other.differential_cases
        self.differential_answers += other.differential_answers
        self.explained += other.explained

    def plain(self) -> dict[str, Any]:
        """As one process hands it to another."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Tally:
        values: dict[str, Any] = {
            name: Counter(value) if isinstance(value, dict) else value for name, value in plain.items()
        }
        return cls(**values)

    def verdict(
        self, *, narrowed: bool, official_is_installed: Callable[[], bool], environ: Mapping[str, str]
    ) -> str | None:
        """Why the run fails although its tests passed. `narrowed`: the user asked for some tests only."""
        if self.left_out and environ.get(REQUIRE_ALL) == "1":
            return f"FAILED: {REQUIRE_ALL}=1, and {sum(self.left_out.values())} tests were left out"
        ours = self.ran["grpc"] or self.ran["inprocess"]
        if ours and not self.ran["official"] and not narrowed and official_is_installed():
            return "FAILED: Google's emulator is on this machine, and nothing ran on it"
        return None

    def closing_lines(self) -> Iterator[str]:
        if self.differential_cases:
            yield f"differential: {self.differential_cases} cases, {self.differential_answers} answers compared"
            for reason, count in self.explained.most_common():
                yield f"  {count} differ as the table says: {reason}"
        if self.ran:
            ran = ", ".join(f"{kind} {self.ran[kind]}" for kind in BACKENDS)
            left_out = "; ".join(f"{count} tests: {reason}" for reason, count in self.left_out.items())
            yield f"backends: {ran}; left out: {left_out or 'nothing'}"
