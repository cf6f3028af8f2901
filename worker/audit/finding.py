from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant."""

    invariant: str
    path: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.path}: {self.sentence}"
