"""A migration, and what it decides for one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firestore_outbox.providers.credentials import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a decision may look at."""

    path: str
    fields: Mapping[str, Any]
    credentials: Credentials = field(default_factory=Credentials)
    """Of the account that the document is; empty for a migration that does not ask for them."""

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Change:
    fields: Mapping[str, Any]
    """New values of top-level fields; `DELETE` (firestore/writes.py) removes one. Other fields stay."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The document has the form that it should have."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """The document should change, and something is missing that only a person can add."""

    because: str


Decision = Change | Keep | Undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    name: str
    """Stable: the cursor is stored under it."""
    what: str
    """One sentence for operators."""
    collection: str
    forward: Callable[[Document], Decision]
    back: Callable[[Document], Decision] | None
    """The way back to the form of the release before; None if there is none."""
    reads_credentials: bool = False
    """Whether the decision needs the secrets of the account that the document is."""
