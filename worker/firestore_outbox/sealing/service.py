"""Opening what is sealed: for the call that sends a message, for members who read, for the user's handlers.

An unwrapped key stays in memory for five minutes: a worker that sends a thousand messages of one account asks Cloud KMS
once. A deleted key therefore opens nothing after five minutes at the latest.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.messages.model import OutboxMessage, Part, SealedPart, TemplatePart, TextPart
from firestore_outbox.providers.opening import RETRY_AFTER
from firestore_outbox.providers.outcome import ErrorCode, Postponed, Rejected
from firestore_outbox.sealing.envelope import (
    CannotOpen,
    PrivateKey,
    Reason,
    checked_envelope,
    opened,
    private_key_of,
    seal_parts,
)
from firestore_outbox.sealing.keys import Keys, StoredKey, context_of
from firestore_outbox.sealing.release import KeyDestroyed, KeyRelease

FRESH = timedelta(minutes=5)
"""How long an unwrapped key is used without another look at its document."""
MOST_KEPT = 10_000
"""Unwrapped keys in memory."""
MOST_TRIED = 5
"""Other key versions that are tried to name the reason for a part that does not open."""

_sealable: TypeAdapter[TextPart | TemplatePart] = TypeAdapter(
    Annotated[TextPart | TemplatePart, Field(discriminator="type")]
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed part stands: what it is bound to besides its key."""

    account_id: str
    message_id: str
    index: int


class Sealing:
    def __init__(self, keys: Keys, release: KeyRelease, clock: Clock, *, kms_key: str) -> None:
        self.keys = keys
        self.kms_key = kms_key
        """Wraps new keys of accounts for which no other one is named."""
        self._release = release
        self._clock = clock
        self._kept: OrderedDict[tuple[str, int], tuple[PrivateKey, datetime]] = OrderedDict()
        self._under_way: dict[tuple[str, int], asyncio.Task[PrivateKey]] = {}

    async def open_message(self, message: OutboxMessage) -> OutboxMessage | Rejected | Postponed:
        """See `providers.opening.Opener`."""
        clear: list[Part] = []
        for index, part in enumerate(message.parts):
            if not isinstance(part, SealedPart):
                clear.append(part)
                continue
            place = Place(message.account_id, message.request_id, index)
            try:
                clear.append(await self.open_part(place, part.keyVersion, part.ciphertext))
            except CannotOpen as error:
                detail = f"part {index + 1} cannot be opened: {error}"
                return Rejected(code=ErrorCode.CANNOT_OPEN, detail=detail)
            except Unavailable as error:
                log.key_unavailable(message.account_id, error)
                detail = "the account's key cannot be had at the moment"
                return Postponed(code=ErrorCode.CANNOT_OPEN, detail=detail, retry_after=RETRY_AFTER)
        return replace(message, parts=tuple(clear))

    async def open_parts(
        self, account_id: str, message_id: str, parts: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """The parts of a message document, opened. One that does not open stays sealed, with the reason as `error`.
        Raises Unavailable."""
        found: list[dict[str, Any]] = []
        for index, part in enumerate(parts):
            if part.get("type") != "sealed":
                found.append(dict(part))
                continue
            try:
                known = SealedPart.model_validate(dict(part))
                place = Place(account_id, message_id, index)
                clear = await self.open_part(place, known.keyVersion, known.ciphertext)
                found.append(clear.model_dump(mode="json", exclude_none=True))
            except ValidationError:
                found.append({"type": "sealed", "error": Reason.MALFORMED.value})
            except CannotOpen as error:
                found.append({"type": "sealed", "error": str(error)})
        return found

    async def seal(self, account_id: str, request_id: str, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """With the account's current key; as they are if it has none by now. Raises CannotSeal or Unavailable."""
        key = await self.keys.current(account_id)
        if key is None:
            return [dict(part) for part in parts]
        return seal_parts(parts, account_id=account_id, request_id=request_id, key=key)

    async def open_part(self, place: Place, version: int, ciphertext: str) -> TextPart | TemplatePart:
        """Raises CannotOpen or Unavailable."""
        raw = checked_envelope(ciphertext, place.account_id, place.message_id)
        key = await self._key(place.account_id, version)
        try:
            content = _opened(raw, key, place, version)
        except CannotOpen as error:
            if error.reason is Reason.ALTERED and await self._opens_with_another(raw, place, version):
                raise CannotOpen(Reason.OTHER_VERSION) from None
            raise
        try:
            return _sealable.validate_python(content)
        except ValidationError:
            raise CannotOpen(Reason.NOT_A_PART) from None

    async def close(self) -> None:
        for task in list(self._under_way.values()):
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        await self._release.close()

    # --- keys

    async def _opens_with_another(self, raw: bytes, place: Place, version: int) -> bool:
        others = [key.version for key in await self.keys.of_account(place.account_id) if key.version != version]
        for other in others[-MOST_TRIED:]:
            try:
                _opened(raw, await self._key(place.account_id, other), place, other)
            except CannotOpen:
                continue
            return True
        return False

    async def _key(self, account_id: str, version: int) -> PrivateKey:
        name = (account_id, version)
        kept = self._kept.get(name)
        if kept is not None and self._clock() < kept[1]:
            self._kept.move_to_end(name)
            return kept[0]
        fetch = self._under_way.get(name)
        if fetch is None:  # one call for all that wait for the same key
            fetch = self._under_way[name] = asyncio.create_task(self._fetch(account_id, version))
            fetch.add_done_callback(lambda task: self._ended(name, task))
        return await asyncio.shield(fetch)

    def _ended(self, name: tuple[str, int], fetch: asyncio.Task[PrivateKey]) -> None:
        del self._under_way[name]
        if not fetch.cancelled():
            fetch.exception()  # the callers that still wait have it; asyncio must not report it as lost

    async def _fetch(self, account_id: str, version: int) -> PrivateKey:
        stored: StoredKey | None = await self.keys.read(account_id, version)
        if stored is None:
            raise CannotOpen(Reason.NO_SUCH_KEY)
        if stored.wrapped_key is None:
            self._kept.pop((account_id, version), None)
            raise CannotOpen(Reason.DELETED_KEY)
        try:
            raw = await self._release.unwrap(stored.kms_key, stored.wrapped_key, context_of(account_id, version))
        except KeyDestroyed:
            raise CannotOpen(Reason.DELETED_KEY) from None
        key = private_key_of(raw)
        self._kept[account_id, version] = (key, self._clock() + FRESH)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return key


def _opened(raw: bytes, key: PrivateKey, place: Place, version: int) -> Any:
    return opened(
        raw, key, account_id=place.account_id, request_id=place.message_id, version=version, index=place.index
    )
