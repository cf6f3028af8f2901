"""What a provider tells us: its webhook verified, and everything in it applied or handed on.

`admit` decides by the path and the headers whether the body is read at all. Nothing in it is looked at before the
signature is checked over the raw bytes, and nothing is written from a body that failed. The path names an account and
its provider; a path that does not fit the account's document is refused. Each event then goes to the account that it
belongs to (routes.py).

A provider waits for its answer, and takes a slow one for a failure. So inbound messages are stored, as many receipts
applied as there is time for, and the others given to Cloud Tasks; what comes of a receipt for an unknown message is
Cloud Tasks' business too (receipts/late.py). A 2xx says that everything is stored or handed on. When
neither was possible the answer is 503, and the provider sends the whole body again: all of it may be applied twice.

    event              before the answer                          after it
    receipt            applied, or handed on                      unknown ones are looked at again
    inbound message    stored; "stop" skips the sender's targets  its conversation's lane runs when it is quiet
    a file in it       noted                                      its account's lane fetches it (fetch.py)
    session up         the account's pause is lifted              what waited goes
    session down       counted                                    the next send finds out
    not understood     counted
    of no account      counted
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import assert_never

from firestore_outbox import log, metrics
from firestore_outbox.accounts.account import Route
from firestore_outbox.clock import Clock
from firestore_outbox.consent.suppressions import Source, Suppressions
from firestore_outbox.consent.words import DEFAULT, Wish, Words, wish_in
from firestore_outbox.errors import StoreUnavailable, Unwritable
from firestore_outbox.inbound.receive import Receive
from firestore_outbox.inbound.routes import Routes, foreign_numbers, routed
from firestore_outbox.messages.address import address_of_sender
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.messages.model import TextPart
from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.protocol import (
    InboundMessage,
    PartReceipt,
    SessionChanged,
    Unrecognised,
    WebhookEvent,
)
from firestore_outbox.providers.registry import Providers, Received, Refused, TryLater
from firestore_outbox.receipts.apply import Applied
from firestore_outbox.receipts.batch import ReceiptBatch
from firestore_outbox.receipts.groups import by_group
from firestore_outbox.receipts.late import LateReceipts
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.reconnect import Reconnect

LONGEST = timedelta(seconds=8)
"""For all of a webhook. Providers that hear nothing for so long have given up, and will send it again."""


class Answer(Enum):
    """The HTTP status to answer with."""

    TAKEN = 200
    REFUSED = 401
    NO_HANDSHAKE = 403
    TRY_LATER = 503


class Webhook:
    def __init__(
        self,
        providers: Providers,
        *,
        routes: Routes,
        receipts: ReceiptBatch,
        late: LateReceipts,
        receive: Receive,
        reconnect: Reconnect,
        hot: HotSet,
        clock: Clock,
        suppressions: Suppressions,
        most_receipts: int,
        patience: timedelta,
    ) -> None:
        """At most `most_receipts` of an account's receipts in a body are applied, for no longer than `patience`."""
        self._providers = providers
        self._routes = routes
        self._receipts = receipts
        self._late = late
        self._receive = receive
        self._reconnect = reconnect
        self._hot = hot
        self._clock = clock
        self._suppressions = suppressions
        self._most_receipts = most_receipts
        self._patience = patience

    async def handshake(self, provider: str, account_id: str, query: Mapping[str, str]) -> str | Answer:
        """What to answer to a provider that makes sure of this address, with 200 and as plain text."""
        route = await self._route(provider, account_id)
        answered = await self._providers.handshake(provider, account_id, query) if isinstance(route, Route) else route
        match answered:
            case str():
                return answered
            case Refused():
                return Answer.NO_HANDSHAKE
            case TryLater():
                return Answer.TRY_LATER
            case _:
                assert_never(answered)

    async def admit(self, provider: str, account_id: str, headers: Mapping[str, str]) -> Answer | None:
        """The answer to a webhook whose body is not worth reading; None for one whose body is."""
        if not is_account_id(account_id):
            answer: Answer | None = Answer.REFUSED
        else:
            admitted = await self._providers.admit(provider, account_id, headers, now=self._clock())
            match admitted:
                case Refused():
                    answer = Answer.REFUSED
                case TryLater():
                    answer = Answer.TRY_LATER
                case None:
                    answer = None
                case _:
                    assert_never(admitted)
        if answer is not None:
            metrics.webhook(answer.name.lower())
        return answer

    async def take(self, provider: str, account_id: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer = await self._answer(provider, account_id, headers, body)
        metrics.webhook(answer.name.lower())
        return answer

    async def _answer(self, provider: str, account_id: str, headers: Mapping[str, str], body: bytes) -> Answer:
        route = await self._route(provider, account_id)
        if not isinstance(route, Route):
            return Answer.TRY_LATER if isinstance(route, TryLater) else Answer.REFUSED
        received = await self._providers.receive(provider, account_id, headers, body, now=self._clock())
        match received:
            case Refused():
                return Answer.REFUSED
            case TryLater():
                return Answer.TRY_LATER
            case Received():
                return await self._deliver(route, received, headers, body)
            case _:
                assert_never(received)

    # --- whose it is

    async def _route(self, provider: str, account_id: str) -> Route | Refused | TryLater:
        """The account of the path. Refused: there is none, or it has another provider."""
        if not is_account_id(account_id):
            return Refused()
        try:
            async with asyncio.timeout(LONGEST.total_seconds()):
                route = await self._routes.of_account(account_id)
        except (TimeoutError, StoreUnavailable) as error:
            log.webhook_put_off(account_id, error)
            return TryLater()
        return route if route is not None and route.provider == provider else Refused()

    async def _deliver(self, route: Route, received: Received, headers: Mapping[str, str], body: bytes) -> Answer:
        """Each event to its account."""
        provider, account_id = route.provider, route.account_id
        if not self._providers[provider].profile.events_name_number:
            return await self._take(provider, account_id, received.events)
        own = received.number if route.number is None else route.number
        try:
            async with asyncio.timeout(LONGEST.total_seconds()):
                elsewhere = await self._elsewhere(provider, foreign_numbers(received.events, own), headers, body)
        except (TimeoutError, StoreUnavailable) as error:
            log.webhook_put_off(account_id, error)
            return Answer.TRY_LATER
        if isinstance(elsewhere, TryLater):
            return Answer.TRY_LATER
        found = routed(received.events, path_account=account_id, own=own, elsewhere=elsewhere)
        if found.dropped:
            log.webhook_number_unknown(account_id, provider, next(iter(found.dropped)), found.dropped.total())
            metrics.webhook_event("unknown_number", found.dropped.total())
        taken = [self._take(provider, owner, events) for owner, events in found.accounts.items()]
        return Answer.TAKEN if {*await asyncio.gather(*taken)} <= {Answer.TAKEN} else Answer.TRY_LATER

    async def _elsewhere(
        self, provider: str, numbers: Sequence[str], headers: Mapping[str, str], body: bytes
    ) -> dict[str, str] | TryLater:
        """The one account of each number whose own secret signed this body."""
        owners: dict[str, str] = {}
        for number, candidates in (await self._routes.of_numbers(provider, numbers)).items():
            signers = []
            for candidate in candidates:
                signed = await self._providers.signed_by(provider, candidate, headers, body, now=self._clock())
                if isinstance(signed, TryLater):
                    return signed
                if isinstance(signed, Credentials):
                    signers.append(candidate)
            if len(signers) == 1:
                owners[number] = signers[0]
        return owners

    async def _take(self, provider: str, account_id: str, events: Sequence[WebhookEvent]) -> Answer:
        receipts = [event for event in events if isinstance(event, PartReceipt)]
        inbound = [event for event in events if isinstance(event, InboundMessage)]
        others = [event for event in events if isinstance(event, SessionChanged | Unrecognised)]
        try:
            async with asyncio.timeout(LONGEST.total_seconds()), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._store(provider, account_id, inbound))
                tasks.create_task(self._apply(account_id, receipts))
                tasks.create_task(self._note(provider, account_id, others))
        except TimeoutError as error:
            log.webhook_put_off(account_id, error)
            return Answer.TRY_LATER
        except ExceptionGroup as failed:  # whatever it was: what is not stored and not handed on must come again
            log.webhook_put_off(account_id, failed.exceptions[0])
            return Answer.TRY_LATER
        return Answer.TAKEN

    # --- inbound messages

    async def _store(self, provider: str, account_id: str, inbound: Sequence[InboundMessage]) -> None:
        """In order for each sender, so that the newest is a thread's last; and a sender's lane is woken once."""
        files_of = provider if self._providers[provider].inbound_files is not None else None
        last = {message.sender: message for message in inbound}
        route = await self._routes.of_account(account_id) if inbound else None
        key = None if route is None else route.sealing
        words = DEFAULT if route is None else route.opt_out

        async def store(message: InboundMessage) -> None:
            try:
                wish = wish_of(message, words)
                if wish is Wish.OUT:  # also when it comes again: the first try may have ended before it was heard
                    await self._suppressions.add(account_id, address_of_sender(message.sender), Source.ASKED)
                is_new = await self._receive.store(account_id, message, key, files_of)
                if wish is Wish.IN and is_new:
                    await self._suppressions.remove(account_id, address_of_sender(message.sender))
                metrics.webhook_event("inbound")
                if message is last[message.sender]:
                    await self._receive.wake(account_id, message.sender)
            except (Unwritable, ValueError, TypeError, OverflowError) as error:  # no document will ever hold it
                log.webhook_event_unusable(account_id, "inbound", type(error).__name__)
                metrics.webhook_event("unusable")

        await by_group(inbound, lambda message: message.sender, store)
        if files_of is not None and any(self._receive.has_files(message) for message in inbound):
            await self._receive.fetch(account_id)

    # --- receipts

    async def _apply(self, account_id: str, receipts: Sequence[PartReceipt]) -> None:
        now, later = receipts[: self._most_receipts], receipts[self._most_receipts :]
        both = (self._late.hand_on(account_id, later), self._apply_now(account_id, now))
        for failed in await asyncio.gather(*both, return_exceptions=True):  # each to its end, whatever the other does
            if failed is not None:
                raise failed

    async def _apply_now(self, account_id: str, receipts: Sequence[PartReceipt]) -> None:
        left = dict(enumerate(receipts))
        unknown: list[PartReceipt] = []

        def done(number: int, applied: Applied) -> None:
            metrics.receipt(applied)
            receipt = left.pop(number)
            if applied is Applied.UNMATCHED:
                log.receipt_unmatched(account_id, receipt.receipt.provider_message_id)
                unknown.append(receipt)

        with suppress(Exception):  # whatever it is, a worker tries again, and says what is wrong
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._receipts.apply(account_id, receipts, done)
        await self._late.hand_on(account_id, list(left.values()))
        await self._late.hand_on(account_id, unknown, looks=1)

    # --- the rest

    async def _note(self, provider: str, account_id: str, events: Sequence[SessionChanged | Unrecognised]) -> None:
        unrecognised = [event for event in events if isinstance(event, Unrecognised)]
        if unrecognised:
            log.webhook_event_unusable(account_id, "unrecognised", unrecognised[0].detail, count=len(unrecognised))
            metrics.webhook_event("unrecognised", len(unrecognised))
        for event in events:
            if isinstance(event, SessionChanged):
                if self._providers[provider].sessions is not None:
                    await self._hot.reported(account_id, provider, connected=event.connected)
                woken = event.connected and await self._reconnect(account_id)
                log.session_changed(account_id, event.connected, woken)
                metrics.webhook_event("session_up" if event.connected else "session_down")


def wish_of(message: InboundMessage, words: Words) -> Wish | None:
    """What a person asks for with a message of one text."""
    first = message.parts[0] if len(message.parts) == 1 else None
    return wish_in(first.text, words) if isinstance(first, TextPart) else None
