"""An account changed by a person: its settings, its members, its end. Every change is one commit with its entry in the
account's action log, `accounts/{accountId}/actions/{actionId}`.

The command line, the HTTP API and pages call the same functions. The caller decides who may do that: an operator with a
shell, or an owner of the account (roles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from firestore_outbox.accounts.changes import Changed, Refused, change
from firestore_outbox.accounts.members import member_fields, member_path
from firestore_outbox.accounts.roles import Role
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, delete, update, upsert
from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore

T = TypeVar("T")

MOST_MEMBERS = 300
MOST_ACTIONS = 50
"""Of the newest that are shown."""
COMMAND_LINE = "command line"
"""`by` of an action that an operator took with a shell; an owner's has the uid."""


@dataclass(frozen=True, slots=True)
class NoAccount:
    account_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An account with everything that belongs to it."""

    account_id: str
    settings: Mapping[str, Any]
    members: Mapping[str, str]
    """uid -> role"""
    actions: Sequence[Mapping[str, Any]]
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    members: int


class Administration:
    def __init__(self, gateway: Gateway, messages: MessageStore, new_id: Callable[[], str], clock: Clock) -> None:
        self._gateway = gateway
        self._messages = messages
        self._new_id = new_id
        self._clock = clock

    async def show(self, account_id: str) -> Shown | NoAccount:
        account = await self._gateway.get(paths.account(account_id))
        if account is None:
            return NoAccount(account_id)
        return Shown(
            account_id=account_id,
            settings=account.data,
            members={member.id: str(member.data.get("role")) for member in await self._members(account_id)},
            actions=await self.actions(account_id),
        )

    async def actions(self, account_id: str | None) -> Sequence[Mapping[str, Any]]:
        """The newest first. None: what operators did with things that belong to no account."""
        newest = Find(collection=paths.actions(account_id), order_by=("-at",), limit=MOST_ACTIONS)
        return [action.data for action in await self._gateway.find(newest)]

    async def set(self, account_id: str, changes: Mapping[str, Any], *, by: str) -> Changed | Refused | NoAccount:
        """`changes` are dotted names or nested maps (changes.py)."""

        async def attempt() -> Changed | Refused | NoAccount | Again:
            account = await self._gateway.get(paths.account(account_id))
            if account is None:
                return NoAccount(account_id)
            changed = change(account_id, account.data, changes, self._clock())
            if isinstance(changed, Refused) or not changed.changes:
                return changed
            fields = {name: DELETE if value is None else value for name, value in changed.fields.items()}
            told = {name: after for name, (_, after) in changed.changes.items()}
            writes = [
                update(account.path, fields, version=account.version),
                self.noted(account_id, "set", by, told),
            ]
            return AGAIN if isinstance(await self._gateway.commit(writes), Conflict) else changed

        return await self._gateway.compare_and_set(attempt)

    async def set_member(
        self, account_id: str, uid: str, role: Role | None, *, by: str
    ) -> Role | Refused | NoAccount | None:
        """Give a person this role; None takes the membership away. Returns the role before."""

        async def attempt() -> Role | Refused | NoAccount | Again | None:
            if not is_document_id(uid):
                return Refused("a uid has 1 to 1,500 bytes and no slash")
            path = member_path(account_id, uid)
            found = await self._gateway.get_all([paths.account(account_id), path])
            if (account := found.get(paths.account(account_id))) is None:
                return NoAccount(account_id)
            before = _role_in(found.get(path))
            if before is Role.OWNER and role is not Role.OWNER and await self._is_last_owner(account_id, uid):
                return Refused(f"{uid} is the only owner; make another member an owner first")
            change = delete(path) if role is None else upsert(path, member_fields(uid, role.value))
            # A write to the account, so that two owners cannot remove each other at the same time.
            guard = update(account.path, {"membersChangedAt": SERVER_TIME}, version=account.version)
            told = {"uid": uid, "role": None if role is None else role.value}
            noted = self.noted(account_id, "member", by, told)
            return AGAIN if isinstance(await self._gateway.commit([guard, change, noted]), Conflict) else before

        return await self._gateway.compare_and_set(attempt)

    async def remove(self, account_id: str) -> Removed | Refused | NoAccount:
        """Delete the account and its members, if nothing waits to be sent. Threads and messages stay until they are
        erased (operations/erase.py)."""
        account = await self._gateway.get(paths.account(account_id))
        if account is None:
            return NoAccount(account_id)
        if waiting := await self._messages.count_in_status(account_id, OutboxStatus.QUEUED):
            return Refused(f"{waiting:,} messages wait to be sent; cancel them first, or let them go")
        paid = await self._gateway.get(paths.billing(account_id))
        if paid is not None and paid.data.get("subscribed") is True:
            return Refused("a subscription is being paid for it; end it in the customer portal first")
        members = await self._members(account_id)
        gone = [account.path, *(member.path for member in members), *_of_billing(paid)]
        await self._gateway.commit([delete(path) for path in gone])
        return Removed(members=len(members))

    async def note(self, account_id: str | None, action: str, *, by: str, detail: Mapping[str, Any]) -> None:
        """Log an action whose own change is no write to the account. `account_id` None: it belongs to no account."""
        await self._gateway.commit([self.noted(account_id, action, by, detail)])

    def noted(self, account_id: str | None, action: str, by: str, detail: Mapping[str, Any]) -> WriteOp:
        """The entry of an action, for the commit that takes it."""
        fields = {"action": action, "by": by, "at": SERVER_TIME, "detail": dict(detail)}
        return create(f"{paths.actions(account_id)}/{self._new_id()}", fields)

    async def _members(self, account_id: str) -> list[Snapshot]:
        return await self._gateway.find(Find(collection=f"{paths.account(account_id)}/members", limit=MOST_MEMBERS))

    async def _is_last_owner(self, account_id: str, uid: str) -> bool:
        owners = [one.id for one in await self._members(account_id) if _role_in(one) is Role.OWNER]
        return owners == [uid]


def _of_billing(paid: Snapshot | None) -> list[str]:
    """The next account of this name must not find the customer of this one."""
    if paid is None:
        return []
    customer = paid.data.get("customer")
    return [paid.path, *([paths.customer(customer)] if isinstance(customer, str) else [])]


def _role_in(member: Snapshot | None) -> Role | None:
    """None: no member, or one whose role is none of the three."""
    role = None if member is None else member.data.get("role")
    return Role(role) if role in [one.value for one in Role] else None
