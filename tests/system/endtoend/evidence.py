"""Which way a message took: what each part of the product and each wire between them kept of it.

    client      writes three documents                     the documents; on Google's emulator the rules were asked
    Firestore   tells functions of the outbox document     a CloudEvent on the wire, answered 2xx
    functions   wake the lane, and enqueue a task          the lane's document; the task's name and queue
    Cloud Tasks calls the worker                           a request with a token that its key signed
    worker      claims, calls the provider, completes      its own count of claims; the call, made during that task
    provider    takes it                                   the simulator's own record
    provider    tells of it, signed                        three webhooks on the wire, answered 200
    functions   move the message on                        the message's times, as the client was shown them

`check` looks at all of it: a shortcut leaves one of these out. `check_short` looks at the way of a message that came
alone, where the function itself takes the lane and calls the provider while it handles the event: no task, no worker.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import httpx
import jwt
from google.cloud import firestore
from google.events.cloud import firestore as firestore_events
from google.protobuf.message import DecodeError

from firestore_outbox.local.dev import PROJECT, QUEUE, SERVICE_ACCOUNT
from firestore_outbox.local.functions_host import OUTBOX_TRIGGER
from firestore_outbox.providers.interakt import adapter as interakt
from firestore_outbox.providers.signed_webhook import adapter as signed_webhook
from firestore_outbox.providers.simulated import adapter as simulated
from firestore_outbox.providers.waha import adapter as waha
from firestore_outbox.providers.whatsapp_cloud import adapter as whatsapp_cloud
from tests.patience import PATIENCE_SECONDS
from tests.system.endtoend.senders import TEXT, Story
from tests.system.endtoend.stack import TappedStack
from tests.system.endtoend.tap import Exchange

T = TypeVar("T")
Fields = dict[str, Any]

LOOK_SECONDS = 0.01
CLAIMS = "outbox_queue_age_seconds_count"
"""The worker counts each claim there."""
WAY = ["pending", "queued", "sent", "delivered", "read"]
RECEIPTS = 3
"""sent, delivered, read"""
WITH_SESSIONS = frozenset({"waha"})
"""Their lanes may have to wait until a session is up, and go on with another task."""
SECOND = 1.0
"""Some providers tell times in whole seconds."""

_DocumentEventData: Any = firestore_events.DocumentEventData.pb()


@dataclass(frozen=True, kw_only=True)
class Traces:
    events: list[Exchange]
    tasks: list[Exchange]
    calls: list[Exchange]
    webhooks: list[Exchange]
    recorded: list[Fields]
    """The simulator's record of the account's calls."""
    message: Fields
    outbox: Fields
    lane: Fields
    claims: int
    """How many the worker counted meanwhile."""
    certificates: Fields
    """Of the Cloud Tasks emulator."""
    audience: str
    """The worker's address, as Cloud Tasks knows it."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """In milliseconds after the client asked for the write."""

    stored: float
    """by the server's time of the documents"""
    event: float
    """at the functions"""
    task: float
    """at the worker"""
    call: float
    """at the provider, by its own record"""
    webhook: float
    """the first one, at the functions"""
    read: float
    """shown by the client's listener"""

    def __str__(self) -> str:
        return (
            f"provider called {self.call:.0f} ms after the write "
            f"(stored {self.stored:.0f}, event {self.event:.0f}, task {self.task:.0f}); "
            f"first receipt {self.webhook:.0f}, shown as read {self.read:.0f}"
        )


# --- collecting


async def claims_counted(stack: TappedStack) -> int:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        text = (await http.get(f"http://127.0.0.1:{stack.ports['worker']}/metrics")).raise_for_status().text
    return sum(int(float(line.rpartition(" ")[2])) for line in text.splitlines() if line.startswith(CLAIMS))


async def collect(
    stack: TappedStack, db: firestore.AsyncClient, story: Story, *, claims_before: int, by_worker: bool = True
) -> Traces:
    account_id = story.account_id

    def tasks() -> list[Exchange]:
        lane = {"kind": "outbox", "key": account_id}
        return [one for one in stack.to_worker.exchanges if _json(one.body) == lane]

    def webhooks() -> list[Exchange]:
        return [one for one in stack.to_functions.exchanges if one.path == f"/{story.provider}/{account_id}"]

    def events() -> list[Exchange]:
        return [one for one in stack.to_functions.exchanges if one.headers.get("ce-document") == _outbox(story)]

    if by_worker:
        await _until(lambda: bool(tasks()) and all(one.status for one in tasks()), "the end of the worker's task")
    await _until(lambda: bool(events()) and all(one.status for one in events()), "the end of the function's event")
    await _until(lambda: sum(one.status is not None for one in webhooks()) >= RECEIPTS, "the webhooks")
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        recorded = await http.get(f"{stack.provider_url}/_sim/calls", params={"accountId": account_id})
        certificates = await http.get(f"http://{stack.tasks}/oidc/certs")
    return Traces(
        events=events(),
        tasks=tasks(),
        calls=[one for one in stack.to_provider.exchanges if _is_call(one, account_id)],
        webhooks=webhooks(),
        recorded=recorded.raise_for_status().json(),
        message=await _read(db, f"threads/{story.thread_id}/messages/{story.request_id}"),
        outbox=await _read(db, _outbox(story)),
        lane=await _read(db, f"lanes/outbox:{account_id}"),
        claims=await claims_counted(stack) - claims_before,
        certificates=certificates.raise_for_status().json(),
        audience=stack.worker_url,
    )


async def _until(is_so: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < ends, f"{what} did not come"
        await asyncio.sleep(LOOK_SECONDS)


async def _read(db: firestore.AsyncClient, path: str) -> Fields:
    return (await db.document(path).get()).to_dict() or {}


def _is_call(exchange: Exchange, account_id: str) -> bool:
    """A message, and no other thing that a provider can be asked for."""
    return TEXT.encode() in exchange.body and account_id.encode() in exchange.path.encode() + exchange.body


def _outbox(story: Story) -> str:
    return f"outbox/{story.request_id}"


def _json(body: bytes) -> Fields:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


# --- checking


def check(story: Story, traces: Traces) -> Times:
    """AssertionError, if a part of the way left no trace."""
    _client_wrote(story, traces)
    event = _firestore_told_functions(story, traces)
    task = _functions_enqueued_and_cloud_tasks_called(story, traces)
    call = _worker_called_the_provider(story, traces, task)
    webhook = _provider_told_functions(story, traces)
    _client_was_shown(story, traces)
    assert story.asked_at <= event.asked_at <= task.asked_at <= call.asked_at <= webhook.asked_at
    called = _moment(traces.recorded[0]["at"])
    assert task.asked_at <= called
    after = _after(story.asked_at)
    return Times(
        stored=after(traces.message["createdAt"].timestamp()),
        event=after(event.asked_at),
        task=after(task.asked_at),
        call=after(called),
        webhook=after(webhook.asked_at),
        read=after(story.shown[-1][1]),
    )


def check_short(story: Story, traces: Traces) -> None:
    """AssertionError, if the function did not send the message itself, during its event."""
    _client_wrote(story, traces)
    event = _firestore_told_functions(story, traces)
    assert traces.tasks == [], "no task"
    assert traces.claims == 0, "no worker"
    assert traces.lane["fence"] == 1, "the function took the lane once"
    call = _only(traces.calls, "call")
    assert event.answered_at is not None
    assert event.asked_at < call.asked_at < event.answered_at, "the function called while it handled the event"
    _provider_took_it(story, traces)
    _provider_told_functions(story, traces)
    _client_was_shown(story, traces)


def _client_wrote(story: Story, traces: Traces) -> None:
    for fields in (traces.message, traces.outbox):
        assert fields["requestId"] == story.request_id
        assert fields["threadId"] == story.thread_id
    assert traces.outbox["createdBy"] == story.uid


def _firestore_told_functions(story: Story, traces: Traces) -> Exchange:
    event = _only(traces.events, "event")
    assert event.path == f"/functions/projects/{PROJECT}/triggers/{OUTBOX_TRIGGER}"
    assert event.headers["ce-type"] == "google.cloud.firestore.document.v1.created"
    assert event.status == 200, event
    document = _document(event.body)
    assert document.name.endswith(f"/documents/{_outbox(story)}")
    assert document.fields["status"].string_value == "queued"
    assert document.fields["accountId"].string_value == story.account_id
    return event


def _functions_enqueued_and_cloud_tasks_called(story: Story, traces: Traces) -> Exchange:
    """The task during which the provider was called."""
    for task in traces.tasks:
        assert (task.method, task.path) == ("POST", "/tasks/lane")
        assert task.headers["x-cloudtasks-queuename"] == QUEUE.rpartition("/")[2]
        assert task.headers["x-cloudtasks-taskname"]
        assert task.headers["x-cloudtasks-taskretrycount"] == "0"
        assert _verified(task.headers["authorization"], traces)["email"] == SERVICE_ACCOUNT
        assert task.status == 200, task
        assert _json(task.answer) == {"held": True}, "a worker took the lane for this task"
    assert traces.lane["fence"] == len(traces.tasks), "and none did without one"
    if story.provider not in WITH_SESSIONS:
        return _only(traces.tasks, "task")
    assert traces.tasks, "no task"
    return traces.tasks[-1]


def _worker_called_the_provider(story: Story, traces: Traces, task: Exchange) -> Exchange:
    call = _only(traces.calls, "call")
    assert task.answered_at is not None
    assert task.asked_at < call.asked_at < task.answered_at, "the worker called while it worked on the task"
    assert traces.claims == 1
    _provider_took_it(story, traces)
    return call


def _provider_took_it(story: Story, traces: Traces) -> None:
    recorded = _only(traces.recorded, "recorded call")
    assert recorded["requestId"] == story.request_id
    assert (recorded["accepted"], recorded["delivered"]) == (True, 1)
    assert (traces.outbox["status"], traces.outbox["attempts"]) == ("sent", 1)


def _provider_told_functions(story: Story, traces: Traces) -> Exchange:
    assert [one.status for one in traces.webhooks] == [200] * RECEIPTS
    header = _SIGNATURES[story.provider].lower()
    assert all(one.headers.get(header) for one in traces.webhooks), "signed"
    assert traces.message["providerMessageId"] == traces.outbox["providerMessageId"]
    return traces.webhooks[0]


def _client_was_shown(story: Story, traces: Traces) -> None:
    assert story.states == [state for state in WAY if state in story.states], "forward, each once"
    assert story.states[-1] == "read"
    assert traces.message["status"] == "read"
    earliest, latest = story.asked_at - SECOND, story.shown[-1][1] + SECOND
    times = {name: traces.message[name] for name in ("createdAt", "sentAt", "readAt")}
    if "deliveredAt" in traces.message:  # a receipt that overtook the worker's own word is put off, and may come last
        times["deliveredAt"] = traces.message["deliveredAt"]
    for name, at in times.items():
        assert earliest <= at.timestamp() <= latest, name


_SIGNATURES = {
    "simulated": simulated.SIGNATURE_HEADER,
    "whatsapp_cloud": whatsapp_cloud.SIGNATURE_HEADER,
    "interakt": interakt.SIGNATURE_HEADER,
    "waha": waha.SIGNATURE_HEADER,
    "signed_webhook": signed_webhook.SIGNATURE_HEADER,
}


def _only(found: list[T], what: str) -> T:
    assert len(found) == 1, f"one {what} is expected, not {len(found)}: {found}"
    return found[0]


def _document(body: bytes) -> Any:
    """As production sends it, or in base64 as Google's emulator does."""
    for raw in _readings(body):
        try:
            document = _DocumentEventData.FromString(raw).value
        except DecodeError:
            continue
        if document.name:
            return document
    raise AssertionError("the event has no document")


def _readings(body: bytes) -> Iterator[bytes]:
    yield body
    yield base64.b64decode(body)


def _verified(authorization: str, traces: Traces) -> Fields:
    """The claims of a token that the Cloud Tasks emulator signed for the worker."""
    token = authorization.removeprefix("Bearer ")
    try:
        key = jwt.PyJWKSet.from_dict(traces.certificates)[jwt.get_unverified_header(token)["kid"]]
        claims: Fields = jwt.decode(token, key.key, algorithms=["RS256"], audience=traces.audience)
    except (jwt.PyJWTError, KeyError) as error:
        raise AssertionError(f"the task's token is not Cloud Tasks' own: {error!r}") from None
    return claims


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _after(start: float) -> Callable[[float], float]:
    return lambda moment: (moment - start) * 1000
