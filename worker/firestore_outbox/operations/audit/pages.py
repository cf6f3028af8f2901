"""All documents of a collection, page by page in the order of their names."""

from __future__ import annotations

from collections.abc import AsyncIterator

from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find

PAGE = 300


async def pages(
    gateway: Gateway, collection: str, *, after: str | None = None, size: int = PAGE
) -> AsyncIterator[list[Snapshot]]:
    """`after` is the path of a document; None begins with the first."""
    cursor = None if after is None else (after,)
    while True:
        page = await gateway.find(Find(collection=collection, order_by=("__name__",), limit=size, start_after=cursor))
        yield page
        if len(page) < size:
            return
        cursor = (page[-1].path,)
