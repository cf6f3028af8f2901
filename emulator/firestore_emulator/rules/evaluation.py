"""One operation under one ruleset: what its conditions can read, and how much of the limits they have used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from firestore_emulator.rules.limits import MAX_ACCESSES, MAX_BATCH_ACCESSES
from firestore_emulator.rules.values import Failure, Path, Unbound, Value, type_name

Closure = Callable[["Evaluation"], Value]
"""A compiled expression: returns its value, or raises Failure if it has none."""

UNDEFINED = object()
"""The value of a variable that this request does not have. Reading the variable is a Failure."""


class Documents(Protocol):
    """What the rules may read of the database. `segments` are those below `documents`, ids included."""

    def document(self, segments: tuple[str, ...], *, after: bool) -> dict[str, Value] | None:
        """Return the document as rules see it (`data`, `id`, `__name__`); None: it does not exist.

        With `after`, the document is as the commit leaves it.
        """


@dataclass(slots=True)
class Accesses:
    """The documents that one request has read, over all its operations."""

    keys: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)


class Evaluation:
    __slots__ = (
        "_found",
        "accesses",
        "database",
        "documents",
        "frame",
        "request",
        "resource",
        "trace",
        "used",
        "wild",
    )

    def __init__(
        self,
        *,
        request: dict[str, Value],
        resource: Value,
        database: str,
        documents: Documents,
        accesses: Accesses,
        trace: list[Any],
    ) -> None:
        self.request = request
        self.resource = resource
        self.database = database
        self.documents = documents
        self.accesses = accesses
        self.trace = trace
        """Where closures that record their values leave them."""
        self.frame: list[Value] = []
        """The arguments and lets of the function that is being evaluated."""
        self.wild: Mapping[int, Value] = {}
        """The variables of the match path, by number."""
        self.used = 0
        """Expressions evaluated so far."""
        self._found: dict[tuple[str, tuple[str | Unbound, ...]], dict[str, Value] | None] = {}
        """What this operation has read, by function and path: a repeated read costs nothing and counts once."""

    def read(self, function: str, path: Value) -> dict[str, Value] | None:
        """Return the document that `get()`, `exists()` and their After forms ask for, within the limits."""
        if type(path) is not Path:
            raise Failure(f"A document is named by a path, not by a {type_name(path)}.")
        key = (function, path.segments)
        if key in self._found:
            return self._found[key]
        named = self._named(path)
        if len(self._found) >= MAX_ACCESSES:
            raise Failure(f"{function}() would be document access {MAX_ACCESSES + 1} of this operation.")
        if (function, named) not in self.accesses.keys:
            if len(self.accesses.keys) >= MAX_BATCH_ACCESSES:
                raise Failure(f"{function}() would be document access {MAX_BATCH_ACCESSES + 1} of this request.")
            self.accesses.keys.add((function, named))
        found = self._found[key] = self.documents.document(named, after=function.endswith("After"))
        return found

    def _named(self, path: Path) -> tuple[str, ...]:
        """The segments below `documents`; Failure if the path names no document of this database."""
        segments = path.segments
        if len(segments) < 5 or len(segments) % 2 == 0 or any(isinstance(part, Unbound) for part in segments):
            raise Failure(f"{path} is no document's path.")
        if segments[:3] != ("databases", self.database, "documents"):
            raise Failure(f"{path} is not in this database.")
        named: tuple[str, ...] = segments[3:]  # type: ignore[assignment]  # no part of it is Unbound
        if any(not part for part in named) or any("/" in part for part in named[::2]):
            raise Failure(f"{path} is no document's path.")
        return named
