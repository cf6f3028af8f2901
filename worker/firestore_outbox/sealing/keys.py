"""The keys of an account: `accounts/{accountId}/keys/{version}`, and the current public one in the account's document.

Private keys are wrapped by Cloud KMS, bound to account and version. No client reads these documents. Members read the
account's document, and so the public key that their clients seal with; webhooks read it too, so that sealing what
arrives costs no read of its own.

A deleted key keeps its document without the wrapped key: its number is never given to another key, and what it sealed
is reported as lost rather than as altered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.errors import NotFound, OutboxError
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, update
from firestore_outbox.sealing.envelope import new_private_key, public_key_of
from firestore_outbox.sealing.release import KeyRelease


class KeysRefused(OutboxError):
    """What was asked cannot be done with the account's keys as they are. The sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    account_id: str
    version: int
    public_key: str
    wrapped_key: str | None
    """None: deleted."""
    kms_key: str
    """The Cloud KMS key that wrapped it; a new key may have another one."""
    created_at: datetime | None
    deleted_at: datetime | None
    is_current: bool = False
    """Whether clients seal with it now."""


def context_of(account_id: str, version: int) -> bytes:
    """What the wrapped key is bound to."""
    return f"firestore-outbox key\0{account_id}\0{version}".encode()


class Keys:
    def __init__(self, gateway: Gateway, release: KeyRelease) -> None:
        self._gateway = gateway
        self._release = release

    async def read(self, account_id: str, version: int) -> StoredKey | None:
        found = await self._gateway.get(paths.sealing_key(account_id, version))
        return None if found is None else _stored(account_id, found, None)

    async def of_account(self, account_id: str) -> list[StoredKey]:
        """All of them, the oldest first."""
        return await self._all(account_id, await self._account(account_id))

    async def current(self, account_id: str) -> Mapping[str, Any] | None:
        """The public key that clients seal with, as the account's document has it; None: the account is not sealed."""
        sealing = (await self._account(account_id)).data.get("sealing")
        return sealing if sealing is None or isinstance(sealing, Mapping) else {}

    async def create(self, account_id: str, kms_key: str) -> StoredKey:
        """The first key. From now on clients seal, and what arrives is sealed."""
        return await self._add(account_id, kms_key, is_first=True)

    async def rotate(self, account_id: str, kms_key: str) -> StoredKey:
        """A new key for what is sealed from now on. Older keys still open what they sealed."""
        return await self._add(account_id, kms_key, is_first=False)

    async def _add(self, account_id: str, kms_key: str, *, is_first: bool) -> StoredKey:
        async def attempt() -> StoredKey | Again:
            account = await self._account(account_id)
            before = await self._all(account_id, account)
            if is_first and _current_version(account) is not None:
                raise KeysRefused(f"{account_id} is sealed already; `outbox keys rotate {account_id}` makes a new key")
            if not is_first and _current_version(account) is None:
                raise KeysRefused(f"{account_id} is not sealed; `outbox keys create {account_id}` begins it")
            version = max((key.version for key in before), default=0) + 1
            private = new_private_key()
            public = public_key_of(private)
            wrapped = await self._release.wrap(kms_key, private, context_of(account_id, version))
            fields = {"version": version, "publicKey": public, "wrappedKey": wrapped, "kmsKey": kms_key}
            current = {"keyVersion": version, "publicKey": public}
            written = await self._gateway.commit(
                [
                    create(paths.sealing_key(account_id, version), fields | {"createdAt": SERVER_TIME}),
                    update(paths.account(account_id), {"sealing": current}, version=account.version),
                ]
            )
            if isinstance(written, Conflict):
                return AGAIN
            key = await self.read(account_id, version)
            assert key is not None, "it was just written"
            return key

        return await self._gateway.compare_and_set(attempt)

    async def delete(self, account_id: str, version: int | None) -> list[int]:
        """Erase what the key sealed, for good. None: all keys, which ends sealing for the account. Returns versions."""

        async def attempt() -> list[int] | Again:
            account = await self._account(account_id)
            found = [key for key in await self._all(account_id, account) if key.wrapped_key is not None]
            chosen = [key for key in found if version is None or key.version == version]
            if version is not None and not chosen:
                raise NotFound(f"{account_id} has no key of version {version}; see `outbox keys list {account_id}`")
            if version is not None and chosen[0].is_current:
                raise KeysRefused(
                    f"version {version} is the one that clients seal with; make a new one first with"
                    f" `outbox keys rotate {account_id}`, or delete all keys with --all"
                )
            writes: list[WriteOp] = [
                update(
                    paths.sealing_key(account_id, key.version),
                    {"wrappedKey": DELETE, "deletedAt": SERVER_TIME},
                    version=None,
                )
                for key in chosen
            ]
            if version is None:
                writes.append(update(paths.account(account_id), {"sealing": DELETE}, version=account.version))
            if writes and isinstance(await self._gateway.commit(writes), Conflict):
                return AGAIN
            return [key.version for key in chosen]

        return await self._gateway.compare_and_set(attempt)

    async def _account(self, account_id: str) -> Snapshot:
        found = await self._gateway.get(paths.account(account_id))
        if found is None:
            raise NotFound(f"there is no account {account_id}")
        return found

    async def _all(self, account_id: str, account: Snapshot) -> list[StoredKey]:
        current = _current_version(account)
        found: Sequence[Snapshot] = await self._gateway.find(
            Find(collection=paths.sealing_keys(account_id), order_by=("version",))
        )
        return [_stored(account_id, one, current) for one in found]


def _current_version(account: Snapshot) -> Any:
    sealing = account.data.get("sealing")
    return sealing.get("keyVersion") if isinstance(sealing, dict) else None


def _stored(account_id: str, found: Snapshot, current: Any) -> StoredKey:
    data = found.data
    wrapped = data.get("wrappedKey")
    return StoredKey(
        account_id=account_id,
        version=data["version"],
        public_key=str(data.get("publicKey", "")),
        wrapped_key=wrapped if isinstance(wrapped, str) else None,
        kms_key=str(data.get("kmsKey", "")),
        created_at=data.get("createdAt"),
        deleted_at=data.get("deletedAt"),
        is_current=data["version"] == current,
    )
