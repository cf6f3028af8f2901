"""Security rules in force: which rules each project has, and who is held against them.

Administrators, and all callers of a project without rules, are not judged. What judges the others is in `enforce.py`,
which is imported with the first rules: an emulator without rules does not wait for it.
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
    """A file of rules cannot be read or does not compile; the message names it and says why."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """One refusal, for people who look for its reason."""

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
        """Called when rules were loaded: who holds a verdict should ask again."""

    def load(self, source: str, project: str | None = None) -> Ruleset:
        """Rules for one project, or for all that have none of their own. RulesRejected leaves the earlier ones."""
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
        """For one call; None: nothing is to be enforced."""
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
