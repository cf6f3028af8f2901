"""The differences between Google's emulator and ours that are meant, each with its reason.

docs/emulator-differences.md tells a person the same. An entry is as narrow as can be: it says for which operation
Google's emulator answers what, and ours what. Whatever no entry explains fails the differential test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    reason: str
    applies: Callable[[Any, str, str], bool]
    """(operation, Google's answer, ours)"""


DIFFERENCES: tuple[Difference, ...] = ()


def explained(operation: Any, googles: str, ours: str) -> str | None:
    for difference in DIFFERENCES:
        if difference.applies(operation, googles, ours):
            return difference.reason
    return None
