"""Several receipts of one account at once, as providers send them: normally a query for thirty messages and
a commit for ten, where one by one they would be thirty queries and thirty commits. What is billed is the same.

The usual course is a message that is known, was sent, and moves on. Everything else (a receipt that settles a send, a
failure, an unknown message, or one that another worker writes to at the same moment) goes its own way through
`Receipts`, and so does a whole batch that turns out not to be usual: to apply a receipt twice does no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.firestore.queries import MOST_IN_A_QUERY
from firestore_outbox.messages.message_document import StoredMessage
from firestore_outbox.messages.shown_store import ReceiptKey, ShownStore
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.receipts.apply import Applied, Receipts
from firestore_outbox.receipts.groups import by_group
from firestore_outbox.receipts.rules import Advance, ShownMessage, apply, needs_outbox

T = TypeVar("T")

MOST_IN_A_COMMIT = 10
"""Few: when another worker writes one of them meanwhile, all of them go one by one."""

Done = Callable[[int, Applied], None]
"""Told of each receipt by its number, as soon as it is applied."""


@dataclass
class _Story:
    """A message, and the receipts that tell of it."""

    message: StoredMessage
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Change:
    message: StoredMessage
    after: ShownMessage
    applied: dict[int, Applied]


class ReceiptBatch:
    def __init__(self, receipts: Receipts, shown: ShownStore) -> None:
        self._receipts = receipts
        self._shown = shown

    async def apply(self, account_id: str, events: Sequence[PartReceipt], done: Done) -> None:
        """When it fails or is cancelled, whatever was not told of as done is to be applied again."""
        left = dict(enumerate(events))

        def tell(number: int, applied: Applied) -> None:
            del left[number]
            done(number, applied)

        if len(events) > 1:
            await self._usual(account_id, events, tell)

        async def one(number: int) -> None:
            tell(number, await self._receipts.apply(account_id, events[number]))

        await by_group(list(left), lambda number: message_of(events[number]), one)

    async def _usual(self, account_id: str, events: Sequence[PartReceipt], tell: Done) -> None:
        try:
            stories = await self._stories(account_id, events)
            changes = [change for story in stories if (change := _change(story, events)) is not None]
            moved = [change for change in changes if change.after != change.message.shown]
            for change in changes:
                if change.after == change.message.shown:
                    _tell_all(change, tell)
            async with asyncio.TaskGroup() as tasks:
                for some in _chunks(moved, MOST_IN_A_COMMIT):
                    tasks.create_task(self._write(some, tell))
        except (UnicodeError, OverflowError):
            return

    async def _stories(self, account_id: str, events: Sequence[PartReceipt]) -> list[_Story]:
        keys: dict[tuple[ReceiptKey, str], list[int]] = {}
        for number, event in enumerate(events):
            key = _key(event)
            if key is not None and event.tells_of_message:
                keys.setdefault(key, []).append(number)
        stories: dict[str, _Story] = {}
        for name, found in await self._find(account_id, list(keys)):
            for value, message in found.items():
                stories.setdefault(message.path, _Story(message)).numbers += keys.get((name, value), [])
        return list(stories.values())

    async def _find(
        self, account_id: str, keys: Sequence[tuple[ReceiptKey, str]]
    ) -> list[tuple[ReceiptKey, dict[str, StoredMessage]]]:
        names: tuple[ReceiptKey, ...] = ("requestId", "providerMessageId")
        asked = [
            (name, chunk)
            for name in names
            for chunk in _chunks([value for key, value in keys if key == name], MOST_IN_A_QUERY)
        ]
        found = await asyncio.gather(*(self._shown.get_all(account_id, name, chunk) for name, chunk in asked))
        return [(name, messages) for (name, _), messages in zip(asked, found, strict=True)]

    async def _write(self, changes: Sequence[_Change], tell: Done) -> None:
        try:
            written = await self._shown.advance([(change.message, change.after) for change in changes])
        except (Unwritable, UnicodeError, OverflowError):
            return  # one of them is odd: see which
        if not isinstance(written, Conflict):
            for change in changes:
                _tell_all(change, tell)


def message_of(receipt: PartReceipt) -> str | None:
    """What receipts of one message have in common."""
    return receipt.request_id or receipt.receipt.provider_message_id


def _key(event: PartReceipt) -> tuple[ReceiptKey, str] | None:
    if event.request_id is not None:
        return "requestId", event.request_id
    provider_message_id = event.receipt.provider_message_id
    return None if provider_message_id is None else ("providerMessageId", provider_message_id)


def _change(story: _Story, events: Sequence[PartReceipt]) -> _Change | None:
    """None: not the usual course."""
    shown = story.message.shown
    applied: dict[int, Applied] = {}
    for number in sorted(story.numbers):
        event = events[number]
        if needs_outbox(shown, event.receipt):
            return None
        decision = apply(shown, event.receipt, mark=event.correlation)
        if isinstance(decision, Advance):
            shown = decision.shown
        applied[number] = Applied.ADVANCED if isinstance(decision, Advance) else Applied.IGNORED
    return _Change(story.message, shown, applied)


def _tell_all(change: _Change, tell: Done) -> None:
    for number, applied in change.applied.items():
        tell(number, applied)


def _chunks(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
