"""What is lost, doubled and late between processes and what they talk to.

A request may be lost (the caller learns UNAVAILABLE, and nothing was done), its answer may be lost (the same words, and
it was done), either may be late, and contention may refuse it. Everything is drawn from the seed; `calm` ends it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import grpc
import httpx
from grpc import aio

from firestore_emulator.outgoing import Answered, HttpCall, Sender
from firestore_emulator.rpc.inprocess import Carry, Wire
from firestore_outbox.local.simulation.processes import outside
from firestore_outbox.local.simulators.core import Answer, Cut, Hang, ProviderCore
from firestore_outbox.local.simulators.webhooks import Webhooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """Rates from 0 to 1, each drawn on its own for each call."""

    lost_request: float = 0.0
    lost_answer: float = 0.0
    contended: float = 0.0
    late: float = 0.0
    latest_seconds: float = 0.0
    """How late something late is, at most."""
    dropped_event: float = 0.0
    """Events and tasks that are taken and never come. (A provider repeats a webhook until it is answered.)"""
    doubled_event: float = 0.0
    late_event: float = 0.0
    """Events, tasks and webhooks that come late, and so in another order."""
    failed_event: float = 0.0
    """Refused with a 500: the sender tries again."""


NO_BAD_LUCK = Luck()
LATEST_EVENT_SECONDS = 20.0
_FASTEST, _SLOWEST = 0.001, 0.02


class Network:
    def __init__(self, random: Random, luck: Luck) -> None:
        self._random = random
        self._luck = luck
        self.each_way = (_FASTEST, _SLOWEST)
        """Seconds that a call takes to its service, and its answer back: at least and at most."""
        self.on_answer: Callable[[str, Any], None] = _ignore
        """Sees each answer of a service, with the method's path: for counters."""
        self.is_dark = False
        """Set when the run has ended: nothing gets through any more."""
        self.added_seconds = 0.0
        """What each call of a service takes in addition."""

    def calm(self) -> None:
        self.change(NO_BAD_LUCK)

    def change(self, luck: Luck) -> None:
        """From now on."""
        self._luck = luck

    def wire(self) -> Wire:
        """Between a process and a service."""

        async def carried(path: str, carry: Carry) -> Any:
            luck = self._luck
            answer = await outside(self._there(path, carry, luck))
            await self._travel(luck)
            if self._happens(luck.lost_answer):
                raise _status(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
            return answer

        return carried

    async def _there(self, path: str, carry: Carry, luck: Luck) -> Any:
        """A request on its way arrives, also if its sender has given up on it, or is dead."""
        await self._travel(luck)
        if self.added_seconds:
            await asyncio.sleep(self.added_seconds)
        if self.is_dark or self._happens(luck.lost_request):
            raise _status(grpc.StatusCode.UNAVAILABLE, "the request was lost")
        if self._happens(luck.contended):
            raise _status(grpc.StatusCode.ABORTED, "contention")
        answer = await carry()
        self.on_answer(path, answer)
        return answer

    def sender(self, deliver: Sender) -> Sender:
        """Between the source of an event or a task and its receiver."""

        async def sent(call: HttpCall) -> Answered:
            luck = self._luck
            if self._happens(luck.doubled_event):
                again = asyncio.get_running_loop().create_task(self._later(deliver, call))
                again.add_done_callback(lambda task: task.cancelled() or task.exception())
            await self._travel(luck)
            if self._happens(luck.late_event):
                await asyncio.sleep(self._random.uniform(0, LATEST_EVENT_SECONDS))
            if self._happens(luck.failed_event):
                return Answered(500)
            answer = await deliver(call)
            if self._happens(luck.lost_answer):
                raise ConnectionError("the answer was lost")
            return answer

        return sent

    def lossy(self, deliver: Sender) -> Sender:
        """The same for what may be taken and never come."""

        async def sent(call: HttpCall) -> Answered:
            return Answered(200) if self._happens(self._luck.dropped_event) else await deliver(call)

        return sent

    async def _later(self, deliver: Sender, call: HttpCall) -> Answered:
        await asyncio.sleep(self._random.uniform(0, 30))
        return await deliver(call)

    async def _travel(self, luck: Luck) -> None:
        seconds = self._random.uniform(*self.each_way)
        if self._happens(luck.late):
            seconds += self._random.uniform(0, luck.latest_seconds)
        await asyncio.sleep(seconds)

    def _happens(self, rate: float) -> bool:
        return rate > 0 and self._random.random() < rate


class ProviderTransport(httpx.AsyncBaseTransport):
    """The provider simulator as an httpx transport: its core, without the web framework around it."""

    def __init__(self, core: ProviderCore, webhooks: Webhooks) -> None:
        self._core = core
        self._webhooks = webhooks
        self.refuses_connections = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.refuses_connections:
            raise httpx.ConnectError("All connection attempts failed", request=request)
        body = await request.aread()
        account_id, what = request.url.path.split("/")[2:4]
        authorization = request.headers.get("authorization", "")
        limit = asyncio.timeout(request.extensions.get("timeout", {}).get("read"))
        try:
            async with limit:
                if what == "media":
                    mime_type = request.headers.get("content-type", "")
                    answer = await outside(self._upload(account_id, authorization, mime_type, body))
                else:
                    answer = await outside(self._call(account_id, authorization, body))
        except TimeoutError:
            if not limit.expired():
                raise
            raise httpx.ReadTimeout("no answer in time", request=request) from None
        if answer is None:
            raise httpx.ReadError("the connection was cut", request=request)
        retry_after = answer.retry_after_seconds
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return httpx.Response(answer.status, headers=headers, json=answer.body, request=request)

    async def _call(self, account_id: str, authorization: str, body: bytes) -> Answer | None:
        verdict = self._core.receive(account_id, authorization, body)
        for delivery in verdict.deliveries:
            self._webhooks.deliver(delivery)
        return await self._carried_out(verdict.then, verdict.latency)

    async def _upload(self, account_id: str, authorization: str, mime_type: str, content: bytes) -> Answer | None:
        return await self._carried_out(*self._core.receive_file(account_id, authorization, mime_type, content))

    async def _carried_out(self, then: Answer | Cut | Hang, latency: timedelta) -> Answer | None:
        await asyncio.sleep(latency.total_seconds())
        match then:
            case Answer() as answer:
                return answer
            case Cut():
                return None
            case Hang():
                await asyncio.sleep(3600)
                return None


def _ignore(path: str, answer: Any) -> None:
    """Nothing is counted."""


def _status(code: grpc.StatusCode, words: str) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=words)
