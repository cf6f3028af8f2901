"""All documents of a collection, page by page in the order of their names."""

from __future__ import annotations

from collections.abc import AsyncIterator

from worker.store.find import Find
from worker.store.gateway import Gateway, Snapshot

PAGE = 300


async def pages(gateway: Gateway, collection: str) -> AsyncIterator[list[Snapshot]]:
    after: tuple[str] | None = None
    while True:
        page = await gateway.find(Find(collection=collection, order_by=("__name__",), limit=PAGE, start_after=after))
        yield page
        if len(page) < PAGE:
            return
        after = (page[-1].path,)
