"""What a handler is given: what is new, ways to answer, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox import log
from firestore_outbox.errors import OutboxError
from firestore_outbox.handlers.events import MOST_A_RUN, Event, EventStore, InboundText
from firestore_outbox.handlers.progress import Progress, advanced, read_from, request_id, unhandled
from firestore_outbox.handlers.registration import CONVERSATION
from firestore_outbox.lane.holder import Holder
from firestore_outbox.limits.limit import Limit, Limits
from firestore_outbox.messages.enqueue import Enqueue, NewMessage, Refused
from firestore_outbox.messages.ids import account_of, recipient_of


class NotSent(OutboxError, ValueError):
    """A message that the outbox does not take. The sentence says what is wrong with it."""


class Permanent(Exception):
    """Raise it for an error that no retry repairs: the run becomes a dead letter, and the lane goes on."""


class Context:
    """One run of one key. It ends with the run."""

    def __init__(
        self,
        holder: Holder,
        store: EventStore,
        enqueue: Enqueue,
        limits: Limits,
        *,
        overlap: timedelta,
        logger: log.Logger,
    ) -> None:
        self.kind = holder.ref.kind
        self.key = holder.ref.key
        """For a conversation its threadId."""
        self.log = logger
        self._holder = holder
        self._store = store
        self._enqueue = enqueue
        self._limits = limits
        self._overlap = overlap
        self._progress = holder.lane.progress
        self._new: list[Event] | list[InboundText] = []
        self._is_full = False
        self._kept: int | None = None
        """How many of them this run handles; None: all."""
        self._sent = 0

    # --- what is new

    async def events(self) -> Sequence[Event]:
        """The events since the last successful run, oldest first. Empty for a conversation."""
        return [one for one in self._new if isinstance(one, Event)]

    async def messages(self) -> Sequence[InboundText]:
        """What people wrote since the last successful run, oldest first. Empty for other kinds."""
        return [one for one in self._new if isinstance(one, InboundText)]

    async def load(self) -> bool:
        """Read what is new. False: there is nothing."""
        since = read_from(self._progress, self._overlap)
        limit = MOST_A_RUN + (0 if self._progress is None else len(self._progress.seen))
        if self.kind == CONVERSATION:
            found = await self._store.messages(self.key, since, limit)
            again = await self._store.messages_named(self.key, self._replayed)
            self._new = unhandled([*found, *again], self._progress)
            self._is_full = len(found) >= limit
        else:
            events = await self._store.events(self._holder.ref, since, limit)
            once_more = await self._store.events_named(self._holder.ref, self._replayed)
            self._new = unhandled([*events, *once_more], self._progress)
            self._is_full = len(events) >= limit
        return bool(self._new)

    @property
    def _replayed(self) -> Sequence[str]:
        return () if self._progress is None else self._progress.replay

    def yield_after(self, last: Event | InboundText) -> None:
        """End the run early: what came up to `last` counts as handled when the handler returns. The rest waits for the
        lane's next turn, behind the lanes that wait already."""
        if last.id not in self.event_ids:
            raise ValueError("yield_after takes one of this run's events or messages")
        self._kept = self.event_ids.index(last.id) + 1

    def begin(self) -> None:
        """A new try of the same run: its messages have the same ids as those of the try before."""
        self._sent = 0
        self._kept = None

    @property
    def event_ids(self) -> list[str]:
        return [one.id for one in self._new]

    @property
    def began_at(self) -> Progress | None:
        """How far the lane had come before this run."""
        return self._progress

    @property
    def is_more_waiting(self) -> bool:
        """Whether the lane has more than one run takes."""
        return self._is_full or (self._kept is not None and self._kept < len(self._new))

    @property
    def progress_when_done(self) -> Progress | None:
        return advanced(self._progress, self._new[: self._kept], self._overlap)

    # --- answers

    async def reply(self, text: str | None = None, *, parts: Sequence[Mapping[str, Any]] | None = None) -> str:
        """Answer in this conversation, through the outbox. Returns the requestId.

        A run that is repeated does not send its replies again."""
        if self.kind != CONVERSATION:
            raise NotSent(f"{self.kind} runs for the key {self.key!r}, which is no conversation: use send()")
        return await self.send(account_of(self.key), recipient_of(self.key), text, parts=parts)

    async def send(
        self,
        account_id: str,
        to: str,
        text: str | None = None,
        *,
        parts: Sequence[Mapping[str, Any]] | None = None,
        at: datetime | None = None,
    ) -> str:
        """Send a message through the outbox, now or `at` a time. Returns the requestId."""
        if (text is None) == (parts is None):
            raise NotSent("give either a text or parts")
        chosen = parts if parts is not None else [{"type": "text", "text": text}]
        number, self._sent = self._sent, self._sent + 1
        name = request_id(self.kind, self.key, self._progress, number)
        if any(isinstance(one, InboundText) and one.is_sealed for one in self._new):
            chosen = await self._store.sealed(account_id, name, chosen)
        new = NewMessage(
            request_id=name,
            account_id=account_id,
            to=to,
            parts=chosen,
            created_by=f"handler:{self.kind}",
            send_at=at,
        )
        result = await self._enqueue(new)
        if isinstance(result, Refused):
            raise NotSent(result.sentence)
        return new.request_id  # sent by an earlier try of this run, perhaps with other words: it stays as it was

    # --- how fast, and how long

    def limit(self, name: str) -> Limit:
        """A rate that all instances share: `async with context.limit("notion"):` waits until one call may go."""
        return self._limits[name]

    @property
    def deadline(self) -> datetime:
        """The lane is taken away at this time. A handler with more to do returns before it; the rest waits."""
        return self._holder.ends_at

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop: the worker shuts down, or another worker has the lane."""
        return not self._holder.may_start()
