"""The handler of `notify` lanes: post what waits to the account's webhook, send it to the devices of its members, and
try again what was not accepted.

Each answer is written before the next receiver is called. A crash between a call and its write repeats that one call,
with the same id and the same body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from firestore_outbox import log
from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.devices import Device, Devices, device_path
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, WriteOp, delete, update
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.notifications.fcm import Fcm, Gone, Refused, Sent
from firestore_outbox.notifications.notification import FAILED, WAITING, fcm_message, posted
from firestore_outbox.notifications.progress import (
    WEBHOOK,
    Progress,
    next_look,
    progress_fields,
    stored_progress,
    with_receivers,
)
from firestore_outbox.notifications.webhook import Accepted, NotAccepted, Webhook
from firestore_outbox.providers.credentials import NOTIFY_SECRET
from firestore_outbox.providers.registry import Providers

PAGE = 20


@dataclass(frozen=True, slots=True)
class NotifyHandler:
    gateway: Gateway
    accounts: AccountStore
    devices: Devices
    providers: Providers
    webhook: Webhook
    fcm: Fcm
    clock: Clock

    async def run(self, holder: Holder) -> Work:
        """One page; the lane comes again for the rest."""
        waiting = await self.waiting(holder.ref.key)
        times: list[datetime] = []
        for document in waiting:
            at = await self._deliver(holder, document)
            if not holder.may_start() or holder.must_yield():
                return More()
            if at is not None:
                times.append(at)
        if times:
            return Later(min(times))
        return More() if len(waiting) == PAGE else Nothing()

    async def waiting(self, account_id: str) -> list[Snapshot]:
        of_account = paths.notifications(account_id)
        return await self.gateway.find(Find(collection=of_account, where=(("state", "==", WAITING),), limit=PAGE))

    async def _deliver(self, holder: Holder, document: Snapshot) -> datetime | None:
        """Call the receivers that are due. Returns when to come again; None: all is settled."""
        stored = stored_progress(document.data)
        at = next_look(stored, self.clock()) if stored else None
        if at is not None and at > self.clock():
            return at  # before anything is read for it
        account_id, version = holder.ref.key, document.version
        url, devices = await self._receivers(account_id, document)
        progress = with_receivers(stored, [*([] if url is None else [WEBHOOK]), *devices])
        due = [receiver for receiver, one in progress.items() if one.is_due(self.clock())]
        if next_look(progress, self.clock()) is None:
            await self._write([self._change(document, version, progress, None)])
        for receiver in due:
            if not holder.may_start() or holder.must_yield():
                break
            if receiver == WEBHOOK and url is not None:
                answer: Sent = await self._post(account_id, url, document)
            else:
                message = fcm_message(account_id, document.id, devices[receiver].token, document.data)
                answer = await self.fcm.send(message)
            progress[receiver] = self._after(account_id, document.id, receiver, progress[receiver], answer)
            writes = [self._change(document, version, progress, receiver)]
            if isinstance(answer, Gone):
                writes.append(delete(device_path(account_id, receiver)))
            written = await self._write(writes)
            if written is None:
                return self.clock()  # it was changed meanwhile: look again
            version = written
        return next_look(progress, self.clock())

    async def _receivers(self, account_id: str, document: Snapshot) -> tuple[str | None, dict[str, Device]]:
        """The webhook's URL, and the devices that were there when it happened."""
        account = await self.accounts.read(account_id)
        if not isinstance(account, Account):
            return None, {}
        happened = document.data.get("createdAt")
        devices = await self.devices.of_members(account_id)
        there = [one for one in devices if not isinstance(happened, datetime) or one.created_at <= happened]
        return account.notify_url, {one.device_id: one for one in there}

    def _change(
        self, document: Snapshot, version: Version, progress: Mapping[str, Progress], called: str | None
    ) -> WriteOp:
        fields = progress_fields(progress, self.clock(), called=called)
        changes = {name: DELETE if value is None else value for name, value in fields.items()}
        return update(document.path, changes, version=version)

    async def _write(self, writes: list[WriteOp]) -> Version | None:
        """The version of the first document; None: it was changed meanwhile."""
        written = await self.gateway.commit(writes)
        return None if isinstance(written, Conflict) else written.versions[0]

    def _after(self, account_id: str, notification_id: str, receiver: str, before: Progress, answer: Sent) -> Progress:
        device_id = None if receiver == WEBHOOK else receiver
        match answer:
            case Accepted():
                after = before.accepted()
                log.notification_delivered(account_id, notification_id, after.attempts, device_id=device_id)
                return after
            case Gone(reason):
                log.device_removed(account_id, receiver, reason)
                return before.refused(reason)
            case Refused(reason):
                after = before.refused(reason)
            case NotAccepted(reason):
                after = before.not_accepted(reason, self.clock())
            case _:
                assert_never(answer)
        given_up = after.state == FAILED
        log.notification_not_accepted(
            account_id, notification_id, after.attempts, reason, given_up=given_up, device_id=device_id
        )
        return after

    async def _post(self, account_id: str, url: str, document: Snapshot) -> Accepted | NotAccepted:
        try:
            secret = await self.providers.secret(account_id, NOTIFY_SECRET)
        except Unavailable as error:
            return NotAccepted(str(error))
        if not secret:
            return NotAccepted("the account has no secret for notifications; outbox accounts rotate --notify makes one")
        body = posted(account_id, document.id, document.data)
        return await self.webhook.post(url, secret, document.id, body, self.clock())
