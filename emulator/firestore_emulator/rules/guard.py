"""Security rules in force: the rules of each project, and the callers that they apply to.

Rules apply neither to administrators nor in a project without rules. `enforce.py` judges all other calls; the first
rules import it, so an emulator without rules starts faster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.identity import Admin, identity_of
from firestore_emulator.storage.engine import Engine

if TYPE_CHECKING:
    from firestore_emulator.rules.enforce import Enforcer, Loaded
    from firestore_emulator.rules.ruleset import Ruleset

KEPT_REFUSALS = 100


class RulesFileError(Exception):
    """A rules file cannot be read or does not compile. The message has its path and the reason."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """One refusal and its explanation."""

    project: str
    method: str
    path: str
    uid: str | None
    micros: int
    reasons: Sequence[str]

    def __str__(self) -> str:
        who = "a caller without a token" if self.uid is None else f"user {self.uid}"
        return "\n".join([f"{self.method} {self.path} by {who} is refused by the security rules", *self.reasons])


class Guard:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._default: Loaded | None = None
        self._projects: dict[str, Loaded] = {}
        self.refusals: deque[Refused] = deque(maxlen=KEPT_REFUSALS)
        self.on_change: list[Callable[[], None]] = []
        """Called when rules have been loaded. A listener then asks for its verdict again."""

    def load(self, source: str, project: str | None = None) -> Ruleset:
        """Load rules for one project, or for all projects without rules of their own.

        RulesRejected leaves the earlier rules in force.
        """
        from firestore_emulator.rules.enforce import Loaded
        from firestore_emulator.rules.ruleset import compile_rules

        loaded = Loaded(compile_rules(source))
        if project is None:
            self._default = loaded
        else:
            self._projects[project] = loaded
        for observer in list(self.on_change):
            observer()
        return loaded.ruleset

    def loaded(self, project: str) -> Loaded | None:
        return self._projects.get(project, self._default)

    def enforcer(self, call: Call, database: str) -> Enforcer | None:
        """Return the enforcer of one call; None: rules do not apply to it."""
        loaded = self.loaded(project_of(database))
        if loaded is None:
            return None
        identity = identity_of(call.metadata)
        if isinstance(identity, Admin):
            return None
        from firestore_emulator.rules.enforce import Enforcer

        return Enforcer(self, self._engine, loaded, database, identity)

    def require_admin(self, call: Call, database: str, what: str) -> None:
        if self.enforcer(call, database) is not None:
            raise RpcError(grpc.StatusCode.PERMISSION_DENIED, f"{what} require admin authentication.")


def project_of(database: str) -> str:
    return database.split("/")[1]
