"""What the acceptance tests see and touch: the documents, as a frontend does; the provider's record; the processes."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_emulator.processes import ManagedProcess
from firestore_outbox.local.dev import DevStack
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.local.simulators.webhooks import SIGNATURE_HEADER, signed
from tests.patience import PATIENCE_SECONDS
from tests.system.acceptance.balancer import Balancer

T = TypeVar("T")
Fields = dict[str, Any]

LOOK_SECONDS = 0.1
IN_WAITING = frozenset({"queued", "sending", "uncertain"})
IN_DOUBT = frozenset({"uncertain"})


async def until(look: Callable[[], Awaitable[T]], good: Callable[[T], bool], what: str) -> T:
    """Looks until it is good, and says what was seen last if that never comes."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while not good(seen := await look()):
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not come; seen last: {seen!r}")
        await asyncio.sleep(LOOK_SECONDS)
    return seen


@dataclass(frozen=True, slots=True)
class Written:
    """A client's batch, as it was committed."""

    request_id: str
    thread_id: str
    at: datetime

    @property
    def outbox(self) -> str:
        return f"outbox/{self.request_id}"

    @property
    def message(self) -> str:
        return f"threads/{self.thread_id}/messages/{self.request_id}"


class World:
    def __init__(
        self, dev: DevStack, balancer: Balancer, client: firestore.AsyncClient, listening: firestore.Client
    ) -> None:
        self.dev = dev
        self.balancer = balancer
        self.client = client
        self._listening = listening
        self._http = httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS)

    async def __aenter__(self) -> World:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.aclose()
        self._listening.close()
        self.client.close()

    # --- a frontend

    async def account(self, **changes: Any) -> str:
        """A new one, without a pace unless told."""
        account_id = f"acc-{secrets.token_hex(4)}"
        fields = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, "concurrency": 5, **changes}
        await self.client.document(f"accounts/{account_id}").set(fields)
        return account_id

    async def send(
        self,
        account_id: str,
        to: str = "+491701",
        *,
        text: str = "hello",
        request_id: str | None = None,
        client: firestore.AsyncClient | None = None,
        **outbox: Any,
    ) -> Written:
        """The contract's batch, as a frontend writes it; `outbox` changes fields of the outbox document."""
        client = client or self.client
        request_id = request_id or secrets.token_hex(12)
        thread_id = f"{account_id}__{to}"
        identity = {
            "requestId": request_id,
            "accountId": account_id,
            "threadId": thread_id,
            "to": to,
            "parts": [{"type": "text", "text": text}],
        }
        thread, now = client.document(f"threads/{thread_id}"), firestore.SERVER_TIMESTAMP
        batch = client.batch()
        shown = {"accountId": account_id, "to": to, "lastMessageAt": now, "lastMessageText": text[:200]}
        batch.set(thread, shown, merge=True)
        message = {**identity, "direction": "outbound", "status": "queued", "createdAt": now}
        batch.create(thread.collection("messages").document(request_id), message)
        queued = {**identity, "status": "queued", "createdAt": now, "createdBy": "u1", "nextAttemptAt": now}
        batch.create(client.document(f"outbox/{request_id}"), {**queued, "attempts": 0, **outbox})
        await batch.commit()
        return Written(request_id, thread_id, batch.commit_time)

    async def send_many(self, account_id: str, count: int, *, threads: int) -> list[Written]:
        """At once, over this number of conversations."""
        return list(
            await asyncio.gather(*(self.send(account_id, f"+49170{n % threads}", text=f"{n}") for n in range(count)))
        )

    # --- what is stored

    async def read(self, path: str, **options: Any) -> Fields:
        snapshot = await self.client.document(path).get(**options)
        return snapshot.to_dict() or {}

    async def becomes(self, path: str, **wanted: Any) -> Fields:
        """The document, once it has these values."""
        return await until(
            lambda: self.read(path),
            lambda fields: all(fields.get(name) == value for name, value in wanted.items()),
            f"{path} with {wanted}",
        )

    async def outbox_of(self, *account_ids: str) -> list[Fields]:
        query = self.client.collection("outbox").where(filter=FieldFilter("accountId", "in", account_ids))
        return [snapshot.to_dict() async for snapshot in query.stream()]

    async def messages_in(self, thread_id: str) -> list[Fields]:
        return [one.to_dict() async for one in self.client.collection(f"threads/{thread_id}/messages").stream()]

    async def all_end(self, *account_ids: str, waiting: frozenset[str] = IN_WAITING) -> list[Fields]:
        """The outbox documents of these accounts, when none of them waits any more."""
        query = self.client.collection("outbox").where(filter=FieldFilter("accountId", "in", account_ids))
        left = query.where(filter=FieldFilter("status", "in", sorted(waiting)))

        async def count() -> int:
            return int((await left.count().get())[0][0].value)

        try:
            await until(count, lambda found: found == 0, f"an end of every message of {account_ids}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {[one.to_dict() async for one in left.limit(3).stream()]}") from None
        return await self.outbox_of(*account_ids)

    @contextmanager
    def watched(self, *paths: str) -> Iterator[dict[str, list[Fields]]]:
        """By path, every state of a document that a listener of the real client was shown."""
        seen: dict[str, list[Fields]] = {path: [] for path in paths}

        def listener(path: str) -> Any:
            def show(snapshots: Sequence[Any], changes: Any, read_time: Any) -> None:
                seen[path].extend(one.to_dict() for one in snapshots if one.exists)

            return self._listening.document(path).on_snapshot(show)

        watches = [listener(path) for path in paths]
        try:
            yield seen
        finally:
            for watch in watches:
                watch.unsubscribe()

    # --- the provider

    async def faults(self, faults: Fields) -> None:
        (await self._http.put(f"{self.dev.provider_url}/_sim/faults", json=faults)).raise_for_status()

    async def calls(self, *account_ids: str) -> list[Fields]:
        answer = await self._http.get(f"{self.dev.provider_url}/_sim/calls")
        return [call for call in answer.json() if call["accountId"] in account_ids]

    async def delivered(self, *account_ids: str) -> Counter[str]:
        """By requestId, how often the recipient got it."""
        times = Counter[str]()
        for call in await self.calls(*account_ids):
            times[call["requestId"]] += call["delivered"]
        return times

    async def calls_reach(self, count: int, *account_ids: str) -> None:
        await until(lambda: self.calls(*account_ids), lambda calls: len(calls) >= count, f"{count} calls")

    async def inbound(self, account_id: str, sender: str, text: str, **more: Any) -> str:
        body = {"accountId": account_id, "from": sender, "text": text, **more}
        answer = await self._http.post(f"{self.dev.provider_url}/_sim/inbound", json=body)
        return str(answer.raise_for_status().json()["providerMessageId"])

    async def webhooks_taken(self) -> None:
        """The provider has nothing left to tell us."""

        async def pending() -> int:
            return int((await self._http.get(f"{self.dev.provider_url}/_sim/health")).json()["webhooksPending"])

        await until(pending, lambda left: left == 0, "the end of the webhooks")

    async def receipt(self, account_id: str, provider_message_id: str, status: str) -> None:
        """One receipt, signed as the provider signs, taken by the function before this returns."""
        now = datetime.now(UTC)
        event = {"type": "receipt", "providerMessageId": provider_message_id, "status": status, "at": now.isoformat()}
        body = json.dumps({"events": [event]}).encode()
        url = f"http://127.0.0.1:{self.dev.ports['functions']}/simulated/{account_id}"
        headers = {SIGNATURE_HEADER: signed(DEFAULT_SECRET, body, now)}
        (await self._http.post(url, content=body, headers=headers)).raise_for_status()

    # --- the workers

    @property
    def worker(self) -> ManagedProcess:
        return self.dev.processes["worker"]

    @asynccontextmanager
    async def more_workers(self, count: int) -> AsyncIterator[None]:
        """Beside the one that is there, behind the same address."""
        names = [f"worker-{n + 2}" for n in range(count)]
        lines = await asyncio.gather(*(self._start(name, "--port", "0") for name in names))
        before = self.balancer.backends
        self.balancer.backends = before + [int(line.rpartition(":")[2]) for line in lines]
        try:
            yield
        finally:
            self.balancer.backends = before
            await asyncio.gather(*(self.dev.processes.pop(name).stop() for name in names))

    async def attempts(self) -> Counter[int]:
        """By each worker's port, how many attempts it says it has ended."""
        made = Counter[int]()
        for port in self.balancer.backends:
            text = (await self._http.get(f"http://127.0.0.1:{port}/metrics")).text
            made[port] = sum(int(float(value)) for value in re.findall(r"^outbox_attempts_total\S* (\S+)$", text, re.M))
        return made

    async def share(self, count: int, since: Counter[int]) -> None:
        """This many workers have ended an attempt since an earlier look. A worker counts one just after it has stored
        it. How many attempts they make together is open: a function sends messages that come alone."""
        await until(self.attempts, lambda now: len(now - since) >= count, f"attempts of {count} workers since {since}")

    @asynccontextmanager
    async def pulling_instead(self) -> AsyncIterator[ManagedProcess]:
        """One worker that pulls, and none that a task could reach."""
        before, self.balancer.backends = self.balancer.backends, []
        await self._start("worker-pull", "--pull")
        try:
            yield self.dev.processes["worker-pull"]
        finally:
            await self.dev.processes.pop("worker-pull").stop()
            self.balancer.backends = before

    async def _start(self, name: str, *options: str) -> str:
        return await self.dev.start(name, ["firestore_outbox.cli", "worker", *options])
