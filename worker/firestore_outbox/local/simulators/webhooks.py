"""Receipts and inbound messages, signed and posted to the webhook, again and again until it says 2xx.

What is posted and how it is signed differs with the provider: a `WebhookForm` for each, and the simulator's own for
names that no adapter has a form for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from firestore_emulator.outgoing import HttpCall, Sender
from firestore_outbox.local.simulators.api import WebhookForm
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.own import SIGNATURE_HEADER as SIGNATURE_HEADER
from firestore_outbox.local.simulators.own import signed as signed
from firestore_outbox.local.simulators.receipts import Delivery, Planned

log = logging.getLogger(__name__)

IN_FLIGHT = 8
"""Few: the cost of an httpx pool grows with the square of its connections."""
DEADLINE = timedelta(seconds=10)
TRIES = 8
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0


def log_given_up(url: str) -> None:
    log.warning("a webhook was given up after %d tries: %s", TRIES, url, extra={"action": "webhook_given_up"})


class BadTemplate(ValueError):
    """The webhook's address cannot be made for each account."""


class Webhooks:
    def __init__(
        self,
        template: str | None,
        secret: str,
        send: Sender,
        clock: Callable[[], datetime],
        forms: Mapping[str, WebhookForm] | None = None,
    ) -> None:
        """`template` is a URL with {provider} and {accountId} in it; None discards everything."""
        if template is not None and not {"{provider}", "{accountId}"} <= set(_placeholders(template)):
            raise BadTemplate(f"the webhook must be a URL with {{provider}} and {{accountId}} in it, not {template!r}")
        self._template = template
        self._secret = secret
        self._send = send
        self._clock = clock
        self._forms = dict(forms or {})
        self._aimed: dict[tuple[str, str], tuple[str, str]] = {}
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def secret(self) -> str:
        return self._secret

    @property
    def pending(self) -> int:
        return len(self._under_way)

    def aim(self, provider: str, account_id: str, url: str, secret: str) -> None:
        """Where this account's events go from now on, and what signs them, as configured at the provider."""
        self._aimed[provider, account_id] = (url, secret)

    def deliver(self, delivery: Delivery) -> None:
        """The receipts of one message, from now on and in the background."""
        target = (delivery.provider, delivery.account_id)
        if delivery.in_order:
            self._start(self._in_order(*target, delivery.receipts))
        else:
            for receipt in delivery.receipts:
                self._start(self._in_order(*target, (receipt,)))

    def post(self, provider: str, account_id: str, event: dict[str, Any]) -> None:
        self._start(self._in_order(provider, account_id, (Planned(event=event, delay=timedelta(0)),)))

    async def drained(self) -> None:
        """Returns when everything was taken or given up."""
        while self._under_way:
            await asyncio.wait(set(self._under_way))

    async def stop(self) -> None:
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._template is None and not self._aimed:
            work.close()
            return
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _in_order(self, provider: str, account_id: str, receipts: tuple[Planned, ...]) -> None:
        form = self._forms.get(provider, OWN)
        waited = timedelta(0)
        for receipt in receipts:
            if receipt.delay > waited:
                await asyncio.sleep((receipt.delay - waited).total_seconds())
                waited = receipt.delay
            body = form.body(account_id, receipt.event)
            url, secret = self._target(provider, account_id)
            await self._until_taken(url, secret, body, form)

    async def _until_taken(self, url: str, secret: str, body: bytes, form: WebhookForm) -> None:
        pause = FIRST_PAUSE_SECONDS
        for left in range(TRIES - 1, -1, -1):
            async with self._slots:
                if await self._taken(url, secret, body, form):
                    return
            if left:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        log_given_up(url)

    async def _taken(self, url: str, secret: str, body: bytes, form: WebhookForm) -> bool:
        headers = {"Content-Type": "application/json"} | form.headers(secret, body, self._clock())
        call = HttpCall(method="POST", url=url, headers=headers, body=body, deadline=DEADLINE)
        try:
            async with asyncio.timeout(DEADLINE.total_seconds()):
                answer = await self._send(call)
        except Exception:  # noqa: BLE001 - whatever the network does, the event stays
            return False
        return 200 <= answer.status < 300

    def _target(self, provider: str, account_id: str) -> tuple[str, str]:
        if (aimed := self._aimed.get((provider, account_id))) is not None:
            return aimed
        assert self._template is not None
        named = self._template.replace("{provider}", quote(provider, safe=""))
        return named.replace("{accountId}", quote(account_id, safe="")), self._secret


def _placeholders(template: str) -> list[str]:
    return [name for name in ("{provider}", "{accountId}") if name in template]
