"""The differences between Google's emulator and ours that are meant, each with its reason.

docs/emulator-differences.md tells a person the same. An entry is as narrow as can be: it says for which operation
Google's emulator answers what, and ours what. A difference that no entry explains fails the differential test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.conformance.operations import Aggregate, BatchGet, ListDocuments, Query


@dataclass(frozen=True)
class Difference:
    reason: str
    applies: Callable[[Any, str, str], bool]
    """(operation, Google's answer, ours)"""


def _deleted_parents_with_times(operation: Any, googles: str, ours: str) -> bool:
    return _lists_missing(operation) and googles.replace("an unknown time an unknown time {}", "(no document)") == ours


def _mask_ignored(operation: Any, googles: str, ours: str) -> bool:
    return _lists_missing(operation) and operation.mask is not None and not _is_code(googles) and not _is_code(ours)


def _unstable_sum(operation: Any, googles: str, ours: str) -> bool:
    return (
        isinstance(operation, Aggregate)
        and any(kind in ("sum", "avg") for kind, _ in operation.kinds)
        and _DOUBLE.sub("a double", googles) == _DOUBLE.sub("a double", ours)
    )


def _nothing_in_a_transaction(operation: Any, googles: str, ours: str) -> bool:
    return isinstance(operation, BatchGet) and not operation.paths and (googles, ours) == ("UNKNOWN", "[]")


def _missing_in_a_transaction(operation: Any, googles: str, ours: str) -> bool:
    return _lists_missing(operation) and googles == "UNKNOWN" and not _is_code(ours)


def _everything_in_a_transaction(operation: Any, googles: str, ours: str) -> bool:
    asked = operation.query if isinstance(operation, Aggregate) else operation
    return isinstance(asked, Query | ListDocuments) and not asked.collection and googles == "UNKNOWN" != ours


def _vector_in_a_map(operation: Any, googles: str, ours: str) -> bool:
    asked = operation.query if isinstance(operation, Aggregate) else operation
    if not isinstance(asked, Query) or asked.nearest is None or not asked.nearest.path.startswith("m."):
        return False
    return googles in ("[] done=True", "{'a0': 0}") and not _is_code(ours)


_DOUBLE = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+|-?inf\b|\bnan\b")


def _is_code(answer: str) -> bool:
    return answer.isupper()


def _lists_missing(operation: Any) -> bool:
    return isinstance(operation, ListDocuments) and operation.show_missing


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "ListDocuments shows a deleted parent with the time of its deletion; the contract says that it has no times",
        _deleted_parents_with_times,
    ),
    Difference(
        "ListDocuments with show_missing forgets its mask",
        _mask_ignored,
    ),
    Difference(
        "BatchGetDocuments of no document in a read-write transaction fails without a status of its own",
        _nothing_in_a_transaction,
    ),
    Difference(
        "ListDocuments with show_missing in a read-write transaction fails without a status of its own",
        _missing_in_a_transaction,
    ),
    Difference(
        "what is asked of all collections in a read-write transaction fails without a status of its own",
        _everything_in_a_transaction,
    ),
    Difference(
        "find_nearest does not find a vector in a map",
        _vector_in_a_map,
    ),
    Difference(
        "sums of doubles depend on their order, and Google's emulator takes them in a different one each time",
        _unstable_sum,
    ),
)


def explained(operation: Any, googles: str, ours: str) -> str | None:
    """Why these answers differ, if that is known."""
    for difference in DIFFERENCES:
        if difference.applies(operation, googles, ours):
            return difference.reason
    return None
