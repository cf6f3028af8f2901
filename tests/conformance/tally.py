"""What a run did, the closing lines that say so, and the verdict on what it left out.

Leaving Google's emulator out is fine on a machine without it, and the closing lines name it. On a machine that has it,
a run that chose tests on it and ran none fails: a suite that judges itself proves nothing. With OUTBOX_REQUIRE_ALL=1
leaving anything out is a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.tiers import Tier

REQUIRE_ALL = "OUTBOX_REQUIRE_ALL"
OTHER_TIER = {Tier.FAST: "make test-slow", Tier.SLOW: "make test"}
"""The command that runs the tests outside a tier."""
BACKENDS = ("grpc", "inprocess", "official")


@dataclass
class Tally:
    ran: Counter[str] = field(default_factory=Counter)
    """Tests, by the Firestore that they ran on."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Tests, by the reason."""
    chose_official: bool = False
    """Whether tests on Google's emulator are among those that this run chose."""
    differential_cases: int = 0
    differential_answers: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Differences that the table of known ones explains, by the reason."""
    subjects: Counter[str] = field(default_factory=Counter)
    """Differential cases, by what they are about; a case can be about several things."""

    def add(self, other: Tally) -> None:
        self.ran += other.ran
        self.chose_official |= other.chose_official
        self.left_out += other.left_out
        self.differential_cases += other.differential_cases
        self.differential_answers += other.differential_answers
        self.explained += other.explained
        self.subjects += other.subjects

    def plain(self) -> dict[str, Any]:
        """As one process hands it to another."""
        return {name: _plain(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Tally:
        values: dict[str, Any] = {
            name: Counter(value) if isinstance(value, dict) else value for name, value in plain.items()
        }
        return cls(**values)

    def verdict(
        self, *, narrowed: bool, official_is_installed: Callable[[], bool], environ: Mapping[str, str]
    ) -> str | None:
        """Why the run fails although its tests passed; None if it does not. `narrowed`: the user named some tests."""
        if self.left_out and environ.get(REQUIRE_ALL) == "1":
            return f"FAILED: {REQUIRE_ALL}=1, and {sum(self.left_out.values())} tests were left out"
        if self.chose_official and not self.ran["official"] and not narrowed and official_is_installed():
            return "FAILED: Google's emulator is on this machine, and nothing ran on it"
        return None

    def closing_lines(self, tier: Tier | None = None) -> Iterator[str]:
        if self.differential_cases:
            yield f"differential: {self.differential_cases} cases, {self.differential_answers} answers compared"
            if self.subjects:
                yield "  cases with " + ", ".join(f"{name}: {count}" for name, count in self.subjects.most_common())
            for reason, count in self.explained.most_common():
                yield f"  {count} differ as the table says: {reason}"
        if self.ran:
            yield "backends: " + ", ".join(f"{kind} {self.ran[kind]}" for kind in BACKENDS)
        if self.ran or self.left_out or tier:
            left_out = "; ".join(f"{count} tests: {reason}" for reason, count in self.left_out.items())
            scope = f"tier {tier} (the other: {OTHER_TIER[tier]}); " if tier else ""
            yield f"{scope}this machine could not run: {left_out or 'nothing'}"


def _plain(counts: Counter[str]) -> dict[str, int]:
    """With names that are texts and nothing more: what carries them between processes refuses members of enums."""
    return {str(name): count for name, count in counts.items()}
