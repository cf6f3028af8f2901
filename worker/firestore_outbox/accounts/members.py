"""The persons of an account: `accounts/{accountId}/members/{uid}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages.ids import is_document_id

MOST = 200
"""Accounts of one person that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    account_id: str
    uid: str
    role: object
    """What the document says, which may be anything."""


def member_path(account_id: str, uid: str) -> str:
    return f"{paths.account(account_id)}/members/{uid}"


def member_fields(uid: str, role: str) -> dict[str, Any]:
    """`uid` is in the document, too: a person's accounts are found by it."""
    return {"role": role, "uid": uid}


@dataclass(frozen=True, slots=True)
class Members:
    gateway: Gateway

    async def role(self, account_id: str, uid: str) -> object:
        """What the member document says, which may be anything. None: not a member."""
        if not is_document_id(uid) or not is_document_id(account_id):
            return None
        member = await self.gateway.get(member_path(account_id, uid))
        return None if member is None else member.data.get("role", "")

    async def accounts_of(self, uid: str) -> list[Member]:
        """The person's accounts, by id. A document of a release before this field is found once it is written again."""
        query = Find(collection="members", group=True, where=(("uid", "==", uid),), limit=MOST)
        found = [one for one in await self.gateway.find(query) if one.id == uid]
        members = [Member(account_id=one.path.split("/")[1], uid=uid, role=one.data.get("role", "")) for one in found]
        return sorted(members, key=lambda member: member.account_id)
