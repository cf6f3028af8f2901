"""Devices on which members want notifications: `accounts/{accountId}/devices/{deviceId}`.

Members' clients write and delete them; the worker deletes those that cannot be reached, or whose member left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from firestore_outbox.accounts.members import member_path
from firestore_outbox.accounts.roles import Role
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import delete
from firestore_outbox.messages.ids import is_document_id

MOST = 500
"""Devices of one account that are looked at: what a lane can serve, and what a notification's document can list."""
MOST_OF_A_MEMBER = 10
"""The newest ones count, so one member cannot crowd out the others."""
_ROLES = frozenset(role.value for role in Role)


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    uid: str
    token: Annotated[str, StringConstraints(min_length=1)]
    platform: str | None = None
    createdAt: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """It never changes: a new token is a new device."""

    device_id: str
    uid: str
    token: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Devices:
    gateway: Gateway

    async def any(self, account_id: str) -> bool:
        return bool(await self.gateway.find(Find(collection=paths.devices(account_id), limit=1)))

    async def of_members(self, account_id: str) -> list[Device]:
        """Those of the account's members of now. The devices of persons who left the account are removed."""
        found = await self.gateway.find(Find(collection=paths.devices(account_id), limit=MOST))
        devices = [device for one in found if (device := parse_device(one.id, one.data)) is not None]
        if not devices:
            return []
        paths_of = {device.uid: member_path(account_id, device.uid) for device in devices}
        members = await self.gateway.get_all(list(paths_of.values()))

        def is_member(uid: str) -> bool:
            member = members.get(paths_of[uid])
            return member is not None and member.data.get("role") in _ROLES

        left = [device for device in devices if not is_member(device.uid)]
        if left:
            await self.gateway.commit([delete(device_path(account_id, device.device_id)) for device in left])
        return newest_of_each([device for device in devices if device not in left])


def device_path(account_id: str, device_id: str) -> str:
    return f"{paths.devices(account_id)}/{device_id}"


def parse_device(device_id: str, data: Mapping[str, Any]) -> Device | None:
    """None: it is something else, which no rule of the product lets a client write."""
    try:
        document = _Document.model_validate(dict(data))
    except ValidationError:
        return None
    if not is_document_id(document.uid):
        return None
    return Device(device_id=device_id, uid=document.uid, token=document.token, created_at=document.createdAt)


def newest_of_each(devices: Iterable[Device]) -> list[Device]:
    """At most MOST_OF_A_MEMBER of each member, the newest first; and each token once."""
    seen: Counter[str] = Counter()
    tokens: set[str] = set()
    chosen: list[Device] = []
    for device in sorted(devices, key=lambda one: (one.created_at, one.device_id), reverse=True):
        if seen[device.uid] < MOST_OF_A_MEMBER and device.token not in tokens:
            seen[device.uid] += 1
            tokens.add(device.token)
            chosen.append(device)
    return chosen
