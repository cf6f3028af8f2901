"""The messages that people see, as receipts and operators change them: looked up, advanced, settled.

Completing an attempt writes them too, together with the outbox document: see `store.completion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Committed, Conflict, Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import WriteOp, update
from firestore_outbox.messages import message_document as shown_message
from firestore_outbox.messages.message_document import StoredMessage, first_shown, is_ours, receipt_changes
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored, rewritten
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.receipts.rules import ShownMessage

ReceiptKey = Literal["requestId", "providerMessageId"]


class ShownStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def get(self, account_id: str, field: ReceiptKey, value: str) -> StoredMessage | None:
        """The message that a receipt is about, by our id as it was echoed, or by the provider's own. One read."""
        where = (("accountId", "==", account_id), (field, "==", value))
        found = await self._gateway.find(Find(collection=paths.MESSAGES, group=True, where=where, limit=2))
        return next((shown_message.read(snapshot) for snapshot in found if is_ours(snapshot)), None)

    async def get_all(self, account_id: str, field: ReceiptKey, values: Sequence[str]) -> dict[str, StoredMessage]:
        """The same for several, at most `MOST_IN_A_QUERY`: those that are known, by value."""
        where = (("accountId", "==", account_id), (field, "in", list(values)))
        found = await self._gateway.find(Find(collection=paths.MESSAGES, group=True, where=where))
        return {str(snapshot.data.get(field)): shown_message.read(snapshot) for snapshot in found if is_ours(snapshot)}

    async def advance(self, changes: Sequence[tuple[StoredMessage, ShownMessage]]) -> Committed | Conflict:
        """All of them or none: each as it was read becomes the one beside it."""
        return await self._gateway.commit(
            [
                update(before.path, receipt_changes(before.shown, after), version=before.version)
                for before, after in changes
            ]
        )

    async def settle(
        self, before: StoredMessage, after: ShownMessage, outbox: tuple[Stored, OutboxMessage] | None
    ) -> Committed | Conflict:
        changes = receipt_changes(before.shown, after)
        writes: list[WriteOp] = []
        if before.version is not None:
            writes.append(update(before.path, changes, version=before.version))
        else:
            assert outbox is not None, "a message that is not shown yet is known from its outbox document"
            if outbox[1].status is OutboxStatus.SENT:  # one that failed is not shown at all
                shown, thread = first_shown(outbox[1])
                writes = [replace(shown, fields={**shown.fields, **changes}, masked=False, exists=False), thread]
        if outbox is not None:
            writes.append(rewritten(*outbox))
        return await self._gateway.commit(writes)
