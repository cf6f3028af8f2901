"""The messages of a conversation, of both directions."""

from __future__ import annotations

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages.ids import is_document_id, thread_id_of


async def conversation(gateway: Gateway, account_id: str, to: str, limit: int) -> list[Snapshot]:
    """The newest first; none if the address cannot be one."""
    thread = thread_id_of(account_id, to)
    if not is_document_id(thread):
        return []
    return await gateway.find(
        Find(collection=f"{paths.thread(thread)}/messages", order_by=("-createdAt",), limit=limit)
    )
