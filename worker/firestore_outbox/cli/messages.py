"""Commands about messages: send, status, why; and a person's word on one: cancel, settle, redrive."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta
from typing import Annotated, Any

import typer

from firestore_outbox.cli.output import Json, console, fail, progress, show_fields, show_json, show_table
from firestore_outbox.cli.system import with_system
from firestore_outbox.firestore import paths
from firestore_outbox.messages.enqueue import Differs, Enqueued, NewMessage, Refused
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.messages.model import OutboxMessage, OutboxStatus
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.operations.redrive import NotRedriven, Redriven
from firestore_outbox.operations.settle import NotSettled, Settled, SettledAs
from firestore_outbox.wiring import System

RequestId = Annotated[str, typer.Argument(metavar="ID", help="The requestId of a message.")]
WATCH_SECONDS = 0.3
MOST_REASONS = 10


def register(app: typer.Typer) -> None:
    app.command()(send)
    app.command()(status)
    app.command()(why)
    app.command("list")(list_)
    app.command()(cancel)
    app.command()(settle)
    app.command()(redrive)


def send(
    account: Annotated[str, typer.Option(help="The account to send from.")],
    to: Annotated[str, typer.Option(help="The recipient's address, as the provider writes it.")],
    text: Annotated[str, typer.Option(help="The text of the message.")],
    request_id: Annotated[str | None, typer.Option(help="The id of this action; random if not given.")] = None,
    delay_seconds: Annotated[float, typer.Option(min=0, max=365 * 86_400, help="Send after this time.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a message to the outbox, as a client would. The same id twice is one message."""

    async def work(system: System) -> dict[str, Any]:
        if is_account_id(account) and await system.gateway.get(paths.account(account)) is None:
            fail(f"there is no account {account}: `outbox accounts list` shows them, `outbox accounts add` adds one")
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
                fail(f"the message was refused: {sentence}")
            case Differs():
                fail(f"another message has the id {new.request_id}; choose another --request-id")
            case Enqueued(status=state, is_new=is_new):
                return {"requestId": new.request_id, "status": state, "isNew": is_new}
        raise AssertionError("every answer was matched")

    result = with_system(work)
    if as_json:
        show_json(result)
    else:
        console.print(
            f"{result['requestId']}  {result['status']}" + ("" if result["isNew"] else "  (it existed already)")
        )


def status(
    request_id: RequestId,
    follow: Annotated[bool, typer.Option("--follow", help="Print changes until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is known of a message."""

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
    """Show what a message waits for, and the earliest time at which it can go."""

    async def work(system: System) -> dict[str, Any]:
        answer = await system.explain(request_id)
        if answer is None:
            fail(f"there is no message {request_id}")
        return {"requestId": request_id, "sentence": answer.sentence, "earliest": answer.earliest}

    answer = with_system(work)
    if as_json:
        show_json(answer)
    else:
        console.print(answer["sentence"])


def list_(
    status: Annotated[OutboxStatus, typer.Option(help="The status.")] = OutboxStatus.UNCERTAIN,
    account: Annotated[str | None, typer.Option(help="Only messages of this account.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most messages to list.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Continue after this message.")] = None,
    as_json: Json = False,
) -> None:
    """List messages of one status: uncertain ones wait for an operator, failed ones can be redriven."""

    async def work(system: System) -> list[dict[str, Any]]:
        found = await system.messages.in_status(status, account_id=account, limit=limit, after=after)
        return [_row(stored) for stored in found]

    rows = with_system(work)
    if as_json:
        show_json(rows)
        return
    columns = ["requestId", "accountId", "to", "attempts", "nextAttemptAt", "runId", "code", "error"]
    where = "" if account is None else f" of {account}"
    show_table(columns, [[row[name] for name in columns] for row in rows], f"no message{where} is {status.value}")
    if len(rows) == limit:
        console.print(f"there may be more: --after {rows[-1]['requestId']}")


def _row(stored: Stored) -> dict[str, Any]:
    message = stored.message
    row: dict[str, Any] = {"requestId": stored.request_id, "accountId": stored.account_id}
    if not isinstance(message, OutboxMessage):
        nothing = dict.fromkeys(("to", "attempts", "nextAttemptAt", "runId"))
        return {**row, **nothing, "code": "invalid_message", "error": message.sentence}
    error = message.last_error
    return {
        **row,
        "to": message.to,
        "attempts": message.attempts,
        "nextAttemptAt": message.next_attempt_at,
        "runId": message.run_id,
        "code": None if error is None else error.code.value,
        "error": None if error is None else error.message,
    }


def cancel(request_id: RequestId, as_json: Json = False) -> None:
    """Cancel a message that has not been sent. A message that is being sent is sent."""

    async def work(system: System) -> str:
        state = await system.cancel(request_id)
        if state is None:
            fail(f"there is no message {request_id}")
        return state

    state = with_system(work)
    if as_json:
        show_json({"requestId": request_id, "status": state})
    if state != OutboxStatus.CANCELLED.value:
        fail(f"{request_id} cannot be cancelled any more: it is {state}")
    if not as_json:
        console.print(f"{request_id}  cancelled")


def settle(
    request_id: RequestId,
    settled_as: Annotated[SettledAs, typer.Option("--as", help="What you found out.")],
    as_json: Json = False,
) -> None:
    """Settle an uncertain message: it was sent, or it failed. To send it again, use redrive."""

    async def work(system: System) -> Settled:
        result = await system.settle(request_id, settled_as)
        if isinstance(result, NotSettled):
            fail(result.sentence)
        return result

    settled = with_system(work)
    if as_json:
        show_json({"requestId": settled.request_id, "status": settled.status.value})
    else:
        console.print(f"{settled.request_id}  {settled.status.value}")


def redrive(
    request_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One message.")] = None,
    account: Annotated[str | None, typer.Option(help="All failed messages of an account.")] = None,
    as_json: Json = False,
) -> None:
    """Put failed messages, or an uncertain one, back into the queue, with all attempts available again."""
    if (request_id is None) == (account is None):
        raise typer.BadParameter("give the ID of one message, or --account for all failed ones of an account")

    async def work(system: System) -> list[Redriven | NotRedriven]:
        if request_id is not None:
            return [await system.redrive.one(request_id)]
        done: list[Redriven | NotRedriven] = []
        with progress("put back", shown=not as_json) as advance:
            async for results in system.redrive.failed_of(str(account)):
                advance(len(results))
                done += results
        return done

    results = with_system(work)
    redriven = [result.request_id for result in results if isinstance(result, Redriven)]
    left = [result for result in results if isinstance(result, NotRedriven)]
    if as_json:
        reasons = [{"requestId": result.request_id, "reason": result.sentence} for result in left]
        show_json({"redriven": redriven, "left": reasons})
    elif redriven:
        console.print(f"{len(redriven)} back in the queue" + (f", {len(left)} left as they are" if left else ""))
    if not redriven:
        fail("nothing to redrive" + (f": {left[0].request_id}: {left[0].sentence}" if left else ""))
    if left and not as_json:
        for result in left[:MOST_REASONS]:
            console.print(f"{result.request_id}: {result.sentence}", soft_wrap=True)
        if len(left) > MOST_REASONS:
            console.print(f"… and {len(left) - MOST_REASONS} more; --json lists each")
