"""Commands about messages: send, status, why, list."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firestore_outbox.cli.ids import RequestId, document_id, no_message
from firestore_outbox.cli.output import Json, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.stored_file import stored, type_of
from firestore_outbox.cli.system import existing_account, with_system
from firestore_outbox.cli.times import check_time, future_time_of, zone_of_account
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus

if TYPE_CHECKING:
    from firestore_outbox.wiring import System

WATCH_SECONDS = 0.3
DEFAULT_LANGUAGE = "en"
"""Of --template; providers name languages this way."""


def register(app: typer.Typer) -> None:
    app.command()(send)
    app.command()(status)
    app.command()(why)
    app.command("list")(list_)


# --- send


def send(
    account: Annotated[str, typer.Option(help="The account to send from.")],
    to: Annotated[str, typer.Option(help="The recipient's address, as the provider writes it.")],
    text: Annotated[str | None, typer.Option(help="The text of the message; the caption of --media.")] = None,
    media: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, dir_okay=False, readable=True, help="A file to send.")
    ] = None,
    template: Annotated[str | None, typer.Option(metavar="NAME", help="A template of the provider.")] = None,
    language: Annotated[str, typer.Option(help="The language of --template.")] = DEFAULT_LANGUAGE,
    param: Annotated[list[str] | None, typer.Option(help="A value for --template, in order; may be repeated.")] = None,
    header: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="For the header of --template: a text, or image=LINK, video=…, document=…."),
    ] = None,
    button: Annotated[
        list[str] | None, typer.Option(help="A value for --template's next button with an address; may be repeated.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When to send: 2030-01-31T09:00, in the account's time zone.")
    ] = None,
    delay_seconds: Annotated[float, typer.Option(min=0, max=365 * 86_400, help="Send after this time.")] = 0,
    priority: Annotated[
        Priority | None,
        typer.Option(help="urgent goes ahead of the account's other messages, bulk behind them."),
    ] = None,
    request_id: Annotated[str | None, typer.Option(help="The id of this action; random if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Write a message to the outbox, as a client would. The same id twice is one message. For a sealed account the
    content is sealed."""
    params = _params(header, param or [], button or [])
    parts = [] if media is not None else [_part(text, template, language, params)]
    if media is not None and (template is not None or params):
        raise typer.BadParameter("a file goes with --text alone, which is its caption", param_hint="--media")
    kind = None if media is None else type_of(media, "--media")
    check_time("--at", at)
    if at is not None and delay_seconds:
        raise typer.BadParameter("give the time either with --at or with --delay-seconds")

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.messages.enqueue import Differs, Enqueued, NewMessage, Refused
        from firestore_outbox.messages.ids import is_account_id

        now, send_at, key = system.clock(), None, None
        if is_account_id(account):
            found = await existing_account(system, account)
            key = found.data.get("sealing")
            send_at = None if at is None else future_time_of("--at", at, zone_of_account(found), now)
        if media is not None and kind is not None:
            parts.append(_media_part(await stored(system.settings, account, media, kind), media.name, text))
        action, sent = request_id or secrets.token_hex(16), parts
        if isinstance(key, dict):
            from firestore_outbox.sealing.envelope import seal_parts

            sent = seal_parts(parts, account_id=account, request_id=action, key=key)
        new = NewMessage(
            request_id=action,
            account_id=account,
            to=to,
            parts=sent,
            created_by="outbox-cli",
            send_at=now + timedelta(seconds=delay_seconds) if delay_seconds else send_at,
            priority=None if priority is None else priority.value,
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


def _media_part(file: dict[str, Any], name: str, caption: str | None) -> dict[str, Any]:
    part = {"type": "media", "mediaId": file["mediaId"], "mimeType": file["mimeType"], "filename": name}
    return part if not caption else {**part, "caption": caption}


def _params(header: str | None, body: list[str], buttons: list[str]) -> list[str] | dict[str, Any]:
    """A list if there are values for the body alone."""
    if header is None and not buttons:
        return body
    given = {"header": None if header is None else _header(header), "body": body, "buttons": buttons}
    return {name: values for name, values in given.items() if values}


def _header(value: str) -> list[str] | dict[str, str]:
    kind, is_file, link = value.partition("=")
    return {kind: link} if is_file and kind in ("image", "video", "document") else [value]


def _part(text: str | None, template: str | None, language: str, params: list[str] | dict[str, Any]) -> dict[str, Any]:
    if (text is None) == (template is None):
        raise typer.BadParameter("give the content either with --text or with --template NAME")
    if template is not None:
        return {"type": "template", "name": template, "language": language, "params": params}
    if params:
        hint = "--param, --header, --button"
        raise typer.BadParameter("they belong to --template; a text has no values to fill in", param_hint=hint)
    return {"type": "text", "text": text}


# --- status, why


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
    fields = await system.status(request_id)
    if fields is None:
        fail(no_message(request_id))
    return fields


def why(request_id: RequestId, as_json: Json = False) -> None:
    """Show what a message waits for, and the earliest time at which it can go."""

    async def work(system: System) -> dict[str, Any]:
        answer = await system.explain(request_id)
        if answer is None:
            fail(no_message(request_id))
        return {"requestId": request_id, "sentence": answer.sentence, "earliest": answer.earliest}

    answer = with_system(work)
    if as_json:
        show_json(answer)
    else:
        console.print(answer["sentence"], soft_wrap=True)


# --- list


def list_(
    status: Annotated[OutboxStatus | None, typer.Option(help="Only messages of this status.")] = None,
    account: Annotated[str | None, typer.Option(help="Only messages of this account.", callback=document_id)] = None,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="The messages of this run, by id.", callback=document_id)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most messages to list.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Continue after this message.")] = None,
    as_json: Json = False,
) -> None:
    """List messages, the newest first. Those with the status uncertain wait for an operator (`outbox settle`); `outbox
    redrive` sends failed ones again."""
    if run is not None and account is not None:
        raise typer.BadParameter("a run belongs to one account: give either --run or --account")

    async def work(system: System) -> list[dict[str, Any]]:
        from firestore_outbox.operations.listing import row_of

        if run is not None:
            if await system.runs.run(run) is None:
                fail(f"there is no run {run}; see: outbox runs list")
            return [row_of(stored) for stored in await system.messages.of_run(run, status, limit, after)]
        if account is not None:
            await existing_account(system, account)
        behind = None if after is None else await system.listing.behind(after)
        if after is not None and behind is None:
            fail(no_message(after))
        found = await system.listing.newest(status, account_id=account, limit=limit, behind=behind)
        return [row_of(stored) for stored in found]

    rows = with_system(work)
    if as_json:
        show_json(rows)
        return
    columns = ["requestId", "status", "createdAt", "accountId", "to", "attempts", "nextAttemptAt", "runId", "code"]
    columns.append("error")
    show_table(columns, [[row[name] for name in columns] for row in rows], _nothing(status, account, run))
    if len(rows) == limit:
        console.print(f"there may be more: --after {rows[-1]['requestId']}")


def _nothing(status: OutboxStatus | None, account: str | None, run: str | None) -> str:
    """What an empty list looked for."""
    owner = f" of {account}" if account is not None else f" of run {run}" if run is not None else ""
    if status is None:
        return f"there is no message{owner} yet"
    others = ", ".join(one.value for one in OutboxStatus if one is not status)
    return f"no message{owner} is {status.value}; --status looks for {others}"
