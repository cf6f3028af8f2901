"""Receipts and inbound messages, signed and posted to the webhook, again and again until it says 2xx.

The signature is written here on its own, and not taken from the adapter: a simulator that shared the code could not
find an error in it. `X-Simulated-Signature: t=<unix seconds>,v1=<hex>`, HMAC-SHA256 over `<t>.<raw body>`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from emulator.outgoing import HttpCall, Sender
from emulator.providers.receipts import Delivery, Planned

log = logging.getLogger(__name__)

IN_FLIGHT = 8
"""Few: the cost of an httpx pool grows with the square of its connections."""
DEADLINE = timedelta(seconds=10)
TRIES = 8
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
SIGNATURE_HEADER = "X-Simulated-Signature"


def log_given_up(url: str) -> None:
    log.warning("a webhook was given up after %d tries: %s", TRIES, url, extra={"action": "webhook_given_up"})


class BadTemplate(ValueError):
    """The webhook's address cannot be made for each account."""


class Webhooks:
    def __init__(self, template: str | None, secret: str, send: Sender, clock: Callable[[], datetime]) -> None:
        """`template` is a URL with {provider} and {accountId} in it; None discards everything."""
        if template is not None and not {"{provider}", "{accountId}"} <= set(_placeholders(template)):
            raise BadTemplate(f"the webhook must be a URL with {{provider}} and {{accountId}} in it, not {template!r}")
        self._template = template
        self._secret = secret
        self._send = send
        self._clock = clock
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def pending(self) -> int:
        return len(self._under_way)

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
        if self._template is None:
            work.close()
            return
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _in_order(self, provider: str, account_id: str, receipts: tuple[Planned, ...]) -> None:
        waited = timedelta(0)
        for receipt in receipts:
            if receipt.delay > waited:
                await asyncio.sleep((receipt.delay - waited).total_seconds())
                waited = receipt.delay
            await self._until_taken(self._url(provider, account_id), json.dumps({"events": [receipt.event]}).encode())

    async def _until_taken(self, url: str, body: bytes) -> None:
        pause = FIRST_PAUSE_SECONDS
        for left in range(TRIES - 1, -1, -1):
            async with self._slots:
                if await self._taken(url, body):
                    return
            if left:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        log_given_up(url)

    async def _taken(self, url: str, body: bytes) -> bool:
        headers = {"Content-Type": "application/json", SIGNATURE_HEADER: signed(self._secret, body, self._clock())}
        call = HttpCall(method="POST", url=url, headers=headers, body=body, deadline=DEADLINE)
        try:
            async with asyncio.timeout(DEADLINE.total_seconds()):
                answer = await self._send(call)
        except Exception:  # noqa: BLE001 - whatever the network does, the event stays
            return False
        return 200 <= answer.status < 300

    def _url(self, provider: str, account_id: str) -> str:
        assert self._template is not None
        named = self._template.replace("{provider}", quote(provider, safe=""))
        return named.replace("{accountId}", quote(account_id, safe=""))


def signed(secret: str, body: bytes, at: datetime) -> str:
    moment = str(int(at.timestamp()))
    mac = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256)
    return f"t={moment},v1={mac.hexdigest()}"


def _placeholders(template: str) -> list[str]:
    return [name for name in ("{provider}", "{accountId}") if name in template]
