"""What an account has used of its plan, counted by Firestore. Only accounts with a limit are counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.plans.plan import Plan, PlanTerm, Room, Usage, UsedUp, allows, plan_of, term_of

SENT = (MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ)
OPEN = (OutboxStatus.SENDING, OutboxStatus.UNCERTAIN)
FRESH = timedelta(seconds=60)
"""How long the API believes the plan that it read of an account."""
MOST_KNOWN = 10_000


class Counts:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def of(self, account_id: str, plan: Plan, now: datetime, *, with_queued: bool = False) -> Usage:
        """What is open, then what was sent, so that a message that a receipt confirms meanwhile is in at least one of
        them. Message documents stay, where outbox documents expire."""
        if with_queued:
            open_ = await self._open(account_id, (*OPEN, OutboxStatus.QUEUED))
        else:
            open_ = await self._doubted(account_id) + await self._open(account_id, OPEN)
        sent = {since: await self._sent(account_id, since) for since in plan.windows(now)}
        return Usage(sent=sent, open=open_)

    async def _open(self, account_id: str, statuses: tuple[OutboxStatus, ...]) -> int:
        where = (("accountId", "==", account_id), ("status", "in", [status.value for status in statuses]))
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=where))

    async def _doubted(self, account_id: str) -> int:
        """In the queue again after an attempt whose outcome is unknown: a receipt may still prove that it was sent."""
        queued = OutboxStatus.QUEUED.value
        where = (("accountId", "==", account_id), ("status", "==", queued), ("doubted", "==", True))
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=where))

    async def _sent(self, account_id: str, since: datetime) -> int:
        where = (
            ("accountId", "==", account_id),
            ("direction", "==", "outbound"),
            ("status", "in", [status.value for status in SENT]),
            ("sentAt", ">=", since),
        )
        return await self._gateway.count(Find(collection=paths.MESSAGES, group=True, where=where))


class PlanCheck:
    """The check of the HTTP API, before a message is stored."""

    def __init__(self, gateway: Gateway, known: Mapping[str, Plan], clock: Clock) -> None:
        self._gateway = gateway
        self._known = known
        self._clock = clock
        self._terms: dict[str, tuple[PlanTerm, datetime]] = {}

    async def refusal(self, account_id: str, request_id: str) -> tuple[Plan, UsedUp] | None:
        """None: the message may be stored. Without configured plans nothing is read; with them, the account is read
        once a minute, and only an account with a limit is counted. A message that is stored already passes."""
        if not self._known:
            return None
        now = self._clock()
        plan = plan_of(self._known, (await self._term(account_id, now)).at(now))
        if plan is None:
            return None
        usage = await Counts(self._gateway).of(account_id, plan, now, with_queued=True)
        if isinstance(allows(plan, usage, now), Room):
            return None
        if await self._gateway.get(paths.outbox(request_id)) is not None:
            return None
        return plan, UsedUp(min(plan.windows(now).values()))

    async def _term(self, account_id: str, now: datetime) -> PlanTerm:
        known = self._terms.get(account_id)
        if known is not None and now < known[1]:
            return known[0]
        found = await self._gateway.get(paths.account(account_id))
        if len(self._terms) >= MOST_KNOWN:
            self._terms.clear()
        term = term_of({} if found is None else found.data)
        self._terms[account_id] = (term, now + FRESH)
        return term
