"""Files from the place that all accounts shared before version 0.2, copied to the accounts that they belong to.

It looks at the messages that are not sent yet and at the reminders that have not ended. The old objects stay, since
workers of the version before still read them. Run it again at any time; what an account has already is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.media.owner import GiveTo, Named, Unclear, owners
from firestore_outbox.media.storage import FileRef, Storage
from firestore_outbox.media.store import UploadRef, UploadStore
from firestore_outbox.messages.model import MediaPart, OutboxMessage, Part, StoredPart
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.reminders.reminder import Reminder, parse_reminder
from firestore_outbox.reminders.reminder_states import ReminderStatus

PAGE = 300
OPEN = (OutboxStatus.QUEUED, OutboxStatus.SENDING, OutboxStatus.UNCERTAIN)


@dataclass(slots=True)
class Adopted:
    """What was done, or with `dry_run` what would be."""

    copied: list[GiveTo] = field(default_factory=list)
    unclear: list[Unclear] = field(default_factory=list)


async def adopt_files(gateway: Gateway, storage: Storage, *, dry_run: bool) -> Adopted:
    uploads, seen, named = UploadStore(gateway), set[FileRef](), []
    async for account_id, part in _parts(gateway):
        ref = FileRef(account_id, part.mediaId)
        if ref in seen:
            continue
        seen.add(ref)
        if await storage.find(ref) is None and await storage.find(ref.old) is not None:
            has_uploaded = await uploads.exists(UploadRef(account_id, part.mediaId))
            named.append(Named(account_id, part.mediaId, has_uploaded))
    adopted = Adopted()
    for decision in owners(named):
        if isinstance(decision, Unclear):
            adopted.unclear.append(decision)
            continue
        ref = FileRef(decision.account_id, decision.media_id)
        if not dry_run:
            await storage.copy(ref.old, ref)
        adopted.copied.append(decision)
    return adopted


async def _parts(gateway: Gateway) -> AsyncIterator[tuple[str, MediaPart]]:
    async for account_id, parts in _named_in_messages(gateway):
        for part in parts:
            if isinstance(part, MediaPart):
                yield account_id, part
    async for account_id, parts in _named_in_reminders(gateway):
        for part in parts:
            if isinstance(part, MediaPart):
                yield account_id, part


async def _named_in_messages(gateway: Gateway) -> AsyncIterator[tuple[str, tuple[StoredPart, ...]]]:
    messages = MessageStore(gateway)
    for status in OPEN:
        after: str | None = None
        while page := await messages.in_status(status, limit=PAGE, after=after):
            for stored in page:
                if isinstance(stored.message, OutboxMessage):
                    yield stored.message.account_id, stored.message.parts
            after = page[-1].request_id


async def _named_in_reminders(gateway: Gateway) -> AsyncIterator[tuple[str, tuple[Part, ...]]]:
    async for page in pages(gateway, paths.REMINDERS):
        for snapshot in page:
            reminder = parse_reminder(snapshot.id, snapshot.data)
            if isinstance(reminder, Reminder) and reminder.status is not ReminderStatus.ENDED:
                yield reminder.account_id, reminder.parts
