"""What the product's own stacks hold Firestore to: the files at the root of the repository that production gets.

With them a query without an index, or a write that no rule allows, fails here, and not after the next deployment.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def _file(name: str) -> Path | None:
    """None: this is an installed package, without the repository around it."""
    path = _ROOT / name
    return path if path.is_file() else None


INDEXES = _file("firestore.indexes.json")
RULES = _file("firestore.rules")
