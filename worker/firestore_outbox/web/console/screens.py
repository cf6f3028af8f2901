"""A screen: what it shows, and to whom. The same data serves the page and its live updates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.rights import Person, Right, allows
from firestore_outbox.web.console.views import Views
from firestore_outbox.wiring import System

SLOW = timedelta(seconds=15)
"""Between two reads of a page about many things."""
FAST = timedelta(seconds=3)
"""Between two reads of a page about one thing."""


@dataclass(frozen=True, slots=True)
class Console:
    """What every page works with."""

    system: System
    identity: Identity
    views: Views
    simulator: str | None = None
    """The address of the provider simulator, on the dev stack alone."""
    emulator: str | None = None
    """Host and port of the Firestore emulator, on the dev stack alone."""
    jobs: dict[str, Any] = field(default_factory=dict)
    """Work that goes on behind a page, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person, and the accounts that they are a member of."""

    person: Person
    roles: Mapping[str, object]
    """accountId -> what the member document says."""

    @property
    def accounts(self) -> tuple[str, ...] | None:
        """Those that may be looked at, by id; None: an operator looks at all."""
        if self.person.is_operator:
            return None
        return tuple(sorted(one for one, role in self.roles.items() if allows(self.person, role, Right.LOOK)))

    def sees(self, account_id: str | None) -> bool:
        return self.person.is_operator or (account_id is not None and account_id in (self.accounts or ()))

    def may(self, account_id: str | None, right: Right) -> bool:
        role = None if account_id is None else self.roles.get(account_id)
        return allows(self.person, role, right)


Params = Mapping[str, str]
LoadScreen = Callable[[Console, Viewer, Params], Awaitable[dict[str, Any] | None]]
"""None: there is no such thing, or the person may not see it; the answer is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    path: str
    """Such as `/messages/{id}`."""
    template: str
    title: str
    load: LoadScreen
    section: str
    """The entry of the menu that is marked."""
    every: timedelta = SLOW
    options: tuple[str, ...] = ()
    """Names in the query that change what is shown."""
    operators_only: bool = False
    is_live: bool = True

    def key(self, viewer: Viewer, params: Params) -> Hashable:
        """Persons with the same roles in the same accounts share what is read: a page may show owners more."""
        roles = None if viewer.person.is_operator else tuple(sorted((one, str(r)) for one, r in viewer.roles.items()))
        return (self.path, roles, tuple(sorted(params.items())))
