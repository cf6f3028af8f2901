"""What the product's own stacks hold Firestore to: the files at the root of the repository that production gets.

With them a query without an index, or a write that no rule allows, fails here, and not after the next deployment.
"""

from __future__ import annotations

from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
"""In a checkout, links to the files at its root; in an installed package, copies of them."""

INDEXES = ASSETS / "firestore.indexes.json"
RULES = ASSETS / "firestore.rules"
CLIENT = ASSETS / "client"
