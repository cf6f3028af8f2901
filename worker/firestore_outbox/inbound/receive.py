"""An inbound message, stored: the message, and its thread's last message and unread count, in one commit, once.

The provider names the sender in its own way; the thread has an address that can be answered (messages/address.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.writes import SERVER_TIME, Increment, WriteOp, create, upsert
from firestore_outbox.inbound.arriving import MOST_FILES, Waiting, WaitingFile, fields_of
from firestore_outbox.lane.ref import conversation_lane, fetch_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.address import address_of_sender
from firestore_outbox.messages.ids import is_document_id, thread_id_of
from firestore_outbox.messages.limits import MAX_PARTS
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.messages.new_documents import identity_fields, thread_fields
from firestore_outbox.providers.protocol import InboundMessage
from firestore_outbox.sealing.envelope import seal_parts

LONGEST_ID = 500
"""Characters of a message's id in the path. Firestore takes 1,500 bytes; real ids are far shorter."""


class Receive:
    def __init__(self, gateway: Gateway, waker: Waker, *, has_handler: bool, has_storage: bool = False) -> None:
        """`has_handler`: whether the user's code handles conversations. Without it no lane is woken. `has_storage`:
        whether files that people send can be kept."""
        self._has_storage = has_storage
        self._gateway = gateway
        self._waker = waker
        self._has_handler = has_handler

    async def __call__(self, account_id: str, inbound: InboundMessage) -> bool:
        """False: it had come before."""
        is_new = await self.store(account_id, inbound, None)
        # Always: the process that stored it the first time may have died before the wake.
        await self.wake(account_id, inbound.sender)
        return is_new

    async def wake(self, account_id: str, sender: str) -> None:
        if self._has_handler:
            await self._waker.wake(conversation_lane(thread_id_of(account_id, address_of_sender(sender))))

    async def fetch(self, account_id: str) -> None:
        """Have the files fetched that wait at the provider."""
        await self._waker.wake(fetch_lane(account_id))

    def has_files(self, inbound: InboundMessage) -> bool:
        return self._has_storage and any(isinstance(part, MediaPart) for part in inbound.parts)

    async def store(
        self, account_id: str, inbound: InboundMessage, key: Mapping[str, Any] | None, files_of: str | None = None
    ) -> bool:
        """`key` seals what people wrote; None: the account is not sealed. `files_of`: the provider that gives the
        message's files; None: they stay there. Raises CannotSeal for an unusable key."""
        to = address_of_sender(inbound.sender)
        thread_id = thread_id_of(account_id, to)
        parts = [part.model_dump(exclude_none=True) for part in inbound.parts]
        if key is not None:
            clear = list(_captions_apart(parts))[:MAX_PARTS]
            parts = seal_parts(clear, account_id=account_id, request_id=message_id_of(inbound), key=key)
        identity = identity_fields(request_id=message_id_of(inbound), account_id=account_id, to=to, parts=parts)
        message = {
            **identity,
            "direction": "inbound",
            "status": "delivered",
            "providerMessageId": inbound.provider_message_id,
            "createdAt": inbound.at,
            "deliveredAt": inbound.at,
            "storedAt": SERVER_TIME,  # what handlers go by: `createdAt` is the provider's time, and may come late
        }
        thread = thread_fields(account_id=account_id, to=to, parts=parts, at=inbound.at) | {"unreadCount": Increment(1)}
        result = await self._gateway.commit(
            [
                create(paths.message(thread_id, message_id_of(inbound)), message),
                upsert(paths.thread(thread_id), thread),
                *self._fetches(account_id, thread_id, inbound, files_of),
            ]
        )
        return not isinstance(result, Conflict)

    def _fetches(
        self, account_id: str, thread_id: str, inbound: InboundMessage, provider: str | None
    ) -> Iterator[WriteOp]:
        if provider is None or not self.has_files(inbound):
            return
        files = [part for part in inbound.parts if isinstance(part, MediaPart)][:MOST_FILES]
        waiting = Waiting(
            message_id=message_id_of(inbound),
            thread_id=thread_id,
            provider=provider,
            files=tuple(
                WaitingFile(media_id=part.mediaId, mime_type=part.mimeType, filename=part.filename) for part in files
            ),
            attempts=0,
            not_before=None,
        )
        yield upsert(f"{paths.fetches(account_id)}/{waiting.message_id}", fields_of(waiting))


def _captions_apart(parts: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A file is not sealed, so its caption becomes a text behind it."""
    for part in parts:
        caption = part.get("caption")
        yield {name: value for name, value in part.items() if name != "caption"}
        if caption:
            yield {"type": "text", "text": caption}


def message_id_of(inbound: InboundMessage) -> str:
    """The provider's id, made safe for a path."""
    safe = quote(inbound.provider_message_id, safe="")
    if len(safe) > LONGEST_ID:
        return sha256(inbound.provider_message_id.encode()).hexdigest()
    return safe if is_document_id(safe) else f"m{safe}"
