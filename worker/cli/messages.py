"""Commands about messages: send, status, why, cancel, redrive."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import typer

from worker.cli.say import Json, console, fail, show_fields, show_json
from worker.cli.system import with_system
from worker.domain.account import Account
from worker.domain.claim import ending_of
from worker.domain.message import OutboxMessage, OutboxStatus
from worker.domain.why import why as reasons_for
from worker.outbox.enqueue import Differs, Enqueued, NewMessage, Refused
from worker.outbox.trigger import lane_of
from worker.store import paths
from worker.store.gateway import DELETE, Conflict, Find, update
from worker.store.messages import DUE_AT_COMMIT, Stored, completion
from worker.wiring import System

RequestId = Annotated[str, typer.Argument(metavar="ID", help="The requestId of a message.")]
WATCH_SECONDS = 0.3


def register(app: typer.Typer) -> None:
    app.command()(send)
    app.command()(status)
    app.command()(why)
    app.command()(cancel)
    app.command()(redrive)


def send(
    account: Annotated[str, typer.Option(help="The account to send from.")],
    to: Annotated[str, typer.Option(help="The recipient's address, as the provider writes it.")],
    text: Annotated[str, typer.Option(help="What to say.")],
    request_id: Annotated[str | None, typer.Option(help="Chosen once for one action; made up if not given.")] = None,
    delay_seconds: Annotated[float, typer.Option(min=0, max=365 * 86_400, help="Send later.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a message to the outbox, as a client would. The same id twice is one message."""

    async def work(system: System) -> dict[str, Any]:
        new = NewMessage(
            request_id=request_id or secrets.token_hex(16),
            account_id=account,
            to=to,
            parts=[{"type": "text", "text": text}],
            created_by="outbox-cli",
            send_at=system.clock() + timedelta(seconds=delay_seconds) if delay_seconds else None,
        )
        match await system.enqueue(new):
            case Refused(sentence=sentence):
                fail(f"it was not accepted: {sentence}")
            case Differs():
                fail(f"another message has the id {new.request_id}")
            case Enqueued(status=state, is_new=is_new):
                return {"requestId": new.request_id, "status": state, "isNew": is_new}
        raise AssertionError("every answer was matched")

    result = with_system(work)
    if as_json:
        show_json(result)
    else:
        console.print(f"{result['requestId']}  {result['status']}" + ("" if result["isNew"] else "  (it was there)"))


def status(
    request_id: RequestId,
    follow: Annotated[bool, typer.Option("--follow", help="Until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """What is known of a message."""

    async def work(system: System) -> dict[str, Any]:
        shown = ""
        while True:
            fields = await _fields(system, request_id)
            line = f"{fields['status']} / {fields['message']}"
            if follow and not as_json and line != shown:
                console.print(line)
                shown = line
            if not follow or fields["status"] in ("failed", "skipped", "cancelled") or fields["message"] == "read":
                return fields
            await asyncio.sleep(WATCH_SECONDS)

    fields = with_system(work)
    if as_json:
        show_json(fields)
    elif not follow:
        show_fields(fields)


async def _fields(system: System, request_id: str) -> dict[str, Any]:
    outbox = await system.gateway.get(paths.outbox(request_id))
    if outbox is None:
        fail(f"there is no message {request_id}")
    thread_id = str(outbox.data.get("threadId"))
    message = await system.gateway.get(paths.message(thread_id, request_id)) if "/" not in thread_id else None
    data = outbox.data
    fields = {
        "requestId": request_id,
        "status": data.get("status"),
        "message": None if message is None else message.data.get("status"),
        "accountId": data.get("accountId"),
        "to": data.get("to"),
        "attempts": data.get("attempts"),
        "nextAttemptAt": data.get("nextAttemptAt"),
        "providerMessageId": data.get("providerMessageId"),
        "sentAt": data.get("sentAt"),
        "deliveredAt": None if message is None else message.data.get("deliveredAt"),
        "readAt": None if message is None else message.data.get("readAt"),
        "lastError": data.get("lastError"),
    }
    return {name: value for name, value in fields.items() if value is not None or name == "message"}


def why(request_id: RequestId, as_json: Json = False) -> None:
    """What a message waits for, and the earliest time it can go."""

    async def work(system: System) -> dict[str, Any]:
        stored = await _stored(system, request_id)
        if not isinstance(stored.message, OutboxMessage):
            return {"requestId": request_id, "sentence": stored.message.sentence, "earliest": None}
        message = stored.message
        lane = (await system.lanes.read(lane_of(message.account_id))).lane
        account = await system.accounts.read(message.account_id)
        if not isinstance(account, Account):
            return {"requestId": request_id, "sentence": account.sentence, "earliest": None}
        answer = reasons_for(message, lane, account, system.clock())
        return {"requestId": request_id, "sentence": answer.sentence, "earliest": answer.earliest}

    answer = with_system(work)
    if as_json:
        show_json(answer)
    else:
        console.print(answer["sentence"])


async def _stored(system: System, request_id: str) -> Stored:
    found = await system.messages.get([request_id])
    if not found:
        fail(f"there is no message {request_id}")
    return found[0]


def cancel(request_id: RequestId, as_json: Json = False) -> None:
    """Take a message back that has not been sent. One that is on its way stays on its way."""

    async def work(system: System) -> str:
        while True:
            stored = await _stored(system, request_id)
            message = stored.message
            if not isinstance(message, OutboxMessage) or message.status is not OutboxStatus.QUEUED:
                return str(stored.status)
            result = await system.gateway.commit(
                [update(paths.outbox(request_id), {"cancelRequested": True}, version=stored.version)]
            )
            if isinstance(result, Conflict):
                continue
            # Now as the lane would do it, so that it shows at once.
            stored = await _stored(system, request_id)
            if not isinstance(stored.message, OutboxMessage):
                return str(stored.status)
            ending = ending_of(stored.message, system.clock())
            ended = getattr(ending, "message", None)
            if isinstance(ended, OutboxMessage):
                await system.messages.write(completion(stored, ended))
            return str((await _stored(system, request_id)).status)

    state = with_system(work)
    if as_json:
        show_json({"requestId": request_id, "status": state})
    if state != OutboxStatus.CANCELLED.value:
        fail(f"{request_id} cannot be cancelled any more: it is {state}")
    if not as_json:
        console.print(f"{request_id}  cancelled")


def redrive(
    request_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One message.")] = None,
    account: Annotated[str | None, typer.Option(help="All failed messages of an account.")] = None,
    as_json: Json = False,
) -> None:
    """Put failed messages back into the queue, with all their attempts before them."""
    if (request_id is None) == (account is None):
        raise typer.BadParameter("give the ID of one message, or --account for all failed ones of an account")

    async def work(system: System) -> list[str]:
        redriven: list[str] = []
        ids = [request_id] if request_id is not None else await _failed(system, str(account))
        for stored in await system.messages.get(ids):
            if await _redrive_one(system, stored):
                redriven.append(stored.request_id)
        for account_id in {stored.account_id for stored in await system.messages.get(redriven)}:
            if account_id is not None:
                await system.waker.wake(lane_of(account_id))
        return redriven

    redriven = with_system(work)
    if as_json:
        show_json({"redriven": redriven})
    if not redriven:
        fail("nothing to redrive: only failed and uncertain messages can be put back")
    if not as_json:
        console.print(f"{len(redriven)} back in the queue")


async def _failed(system: System, account_id: str) -> list[str]:
    where = (("accountId", "==", account_id), ("status", "==", OutboxStatus.FAILED.value))
    found = await system.gateway.find(Find(collection=paths.OUTBOX, where=where, select=("requestId",)))
    return [snapshot.id for snapshot in found]


async def _redrive_one(system: System, stored: Stored) -> bool:
    message = stored.message
    if not isinstance(message, OutboxMessage) or message.status not in (OutboxStatus.FAILED, OutboxStatus.UNCERTAIN):
        return False
    again, *shown = completion(stored, message.redriven(at=system.clock()))
    writes = [replace(again, fields={**again.fields, **DUE_AT_COMMIT}), *shown]
    writes.append(update(paths.message(message.thread_id, message.request_id), _QUEUED_AGAIN, version=None))
    return not isinstance(await system.messages.write(writes), Conflict)


_QUEUED_AGAIN = {"status": "queued", "error": DELETE, "failedAt": DELETE}
