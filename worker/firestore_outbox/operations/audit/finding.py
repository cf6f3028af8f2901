from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant, or one that is about to break."""

    invariant: str
    path: str
    sentence: str
    is_warning: bool = False
    """Nothing is broken yet, and will be unless an operator acts."""

    def __str__(self) -> str:
        return f"{'warning: ' if self.is_warning else ''}{self.invariant}: {self.path}: {self.sentence}"
