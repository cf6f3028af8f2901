"""What became of each target of a run: page by page, or as a file that is written while it is read.

A page costs a read for each target, and one more for each that was sent: its receipts are in its thread. Memory holds
one page, however many targets the run has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.target_rows import csv_lines, target_row

PAGE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    targets: list[dict[str, Any]]
    after: str | None
    """The next page follows this requestId; None: this page is the last."""


@dataclass(frozen=True, slots=True)
class Report:
    gateway: Gateway
    messages: MessageStore

    async def page(
        self, run_id: str, limit: int = PAGE, after: str | None = None, status: OutboxStatus | None = None
    ) -> TargetPage:
        """Targets by requestId, behind `after`; only those whose outbox document has `status`, if one is given."""
        found = await self.messages.of_run(run_id, status, limit, after)
        valid = [one.message for one in found if isinstance(one.message, OutboxMessage)]
        names = [paths.message(one.thread_id, one.request_id) for one in valid if one.sent_at is not None]
        seen = await self.gateway.get_all(names) if names else {}
        shown = {snapshot.id: snapshot.data for snapshot in seen.values()}
        rows = [
            target_row(one.message, shown.get(one.request_id)) if isinstance(one.message, OutboxMessage) else _bare(one)
            for one in found
        ]
        return TargetPage(targets=rows, after=found[-1].request_id if found else None)

    async def as_csv(self, run_id: str) -> AsyncIterator[str]:
        """The file in pieces: a header, then a page of lines at a time."""
        after, is_first = None, True
        while True:
            page = await self.page(run_id, PAGE, after)
            yield csv_lines(page.targets, with_header=is_first)
            if page.after is None:
                return
            after, is_first = page.after, False


def _bare(one: Stored) -> dict[str, Any]:
    """Of a document that cannot be read as a message."""
    row = {"to": one.to, "status": one.status, "requestId": one.request_id}
    return {name: value for name, value in row.items() if value is not None}
