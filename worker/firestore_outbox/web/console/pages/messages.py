"""Messages: found by id, account, address, status and time; one of them as a timeline, with why and its actions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import PlainTextResponse, Response

from firestore_outbox.messages.conversation import conversation
from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.operations.listing import Behind
from firestore_outbox.operations.redrive import NotRedriven
from firestore_outbox.operations.settle import NotSettled, SettledAs
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Subject, not_done
from firestore_outbox.web.console.rendering import as_json, zone_named
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.rows import shown_row
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer
from firestore_outbox.web.console.words import preview

PAGE = 50
MOST_THREADS = 20
"""Accounts whose conversation with an address is looked for."""
BEHIND_ALL = "\uffff"
"""An id behind every other one of the same time."""


async def search(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    account, to = params.get("account"), params.get("to", "").strip()
    status = OutboxStatus(params["status"]) if params.get("status") in set(OutboxStatus) else None
    found: dict[str, Any] = {"statuses": list(OutboxStatus), "fault": None, "rows": [], "more": None, "by": "newest"}
    if account and not viewer.sees(account):
        return {**found, "fault": f"There is no account {account}, or you are not a member of it."}
    if wanted := params.get("id", "").strip():
        return {**found, "by": "id", "rows": await _by_id(console, viewer, wanted)}
    accounts = [account] if account else None if viewer.accounts is None else list(viewer.accounts)
    if to:
        if accounts is None:
            return {**found, "fault": "Name the account, too: an address is looked for among its conversations."}
        return {**found, "by": "address", "rows": await _of_address(console, accounts[:MOST_THREADS], to, status)}
    behind = await _behind(console, params)
    listing = console.system.listing
    if accounts is None:
        stored = await listing.newest(status, account_id=None, limit=PAGE, behind=behind)
    else:
        stored = await listing.of_accounts(status, accounts, limit=PAGE, behind=behind) if accounts else []
    rows = [shown_row(one) for one in stored]
    return {**found, "rows": rows, "more": rows[-1]["requestId"] if len(rows) == PAGE else None}


async def _by_id(console: Console, viewer: Viewer, request_id: str) -> list[dict[str, Any]]:
    stored = await console.system.messages.get([request_id]) if is_document_id(request_id) else []
    return [shown_row(one) for one in stored if viewer.sees(one.account_id)]


async def _of_address(
    console: Console, accounts: list[str], to: str, status: OutboxStatus | None
) -> list[dict[str, Any]]:
    """Both directions of the conversations with this address, the newest first."""
    rows: list[dict[str, Any]] = []
    for account_id in accounts:
        for one in await conversation(console.system.gateway, account_id, to, PAGE):
            data = one.data
            if status is None or data.get("status") == status:
                rows.append({**_thread_row(one.id, data), "accountId": account_id, "to": to})
    return sorted(rows, key=lambda row: row["createdAt"] or datetime.min.replace(tzinfo=UTC), reverse=True)[:PAGE]


def _thread_row(request_id: str, data: dict[str, Any]) -> dict[str, Any]:
    at, error = data.get("createdAt"), data.get("error")
    return {
        "requestId": request_id,
        "status": "received" if data.get("direction") == "inbound" else data.get("status"),
        "createdAt": at if isinstance(at, datetime) else None,
        "attempts": None,
        "nextAttemptAt": None,
        "runId": data.get("runId"),
        "code": error.get("code") if isinstance(error, dict) else None,
        "error": None,
        "text": preview(data.get("parts") or ()),
    }


async def _behind(console: Console, params: Params) -> Behind | None:
    if after := params.get("after"):
        return await console.system.listing.behind(after)
    try:
        at = datetime.fromisoformat(params.get("before", ""))
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=zone_named(params.get("zone")))
    return Behind(created_at=at, request_id=BEHIND_ALL)


async def show(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    request_id = params["id"]
    view = await console.system.status.view(request_id) if is_document_id(request_id) else None
    if view is None or not viewer.sees(_account_of(view.outbox)):
        return None
    why = await console.system.explain(request_id)
    parts = [part for part in view.outbox.get("parts") or () if isinstance(part, dict)]
    return {"title": f"Message {request_id}", "id": request_id, "view": view, "why": why, "parts": parts}


async def as_document(console: Console, viewer: Viewer, params: Params) -> Response | None:
    found = await show(console, viewer, params)
    if found is None:
        return None
    view, why = found["view"], found["why"]
    told = None if why is None else {"sentence": why.sentence, "earliest": why.earliest}
    body = {"outbox": view.outbox, "message": view.shown, "why": told}
    return PlainTextResponse(as_json(body), media_type="application/json")


def _account_of(outbox: Any) -> str | None:
    account_id = outbox.get("accountId")
    return account_id if isinstance(account_id, str) else None


# --- what can be done


async def _message(console: Console, request_id: str) -> Any:
    found = await console.system.messages.get([request_id]) if is_document_id(request_id) else []
    return found[0] if found else None


async def _to_cancel(console: Console, person: Person, request_id: str) -> Subject | None:
    stored = await _message(console, request_id)
    if stored is None:
        return None
    is_own = getattr(stored.message, "created_by", None) == person.uid
    right = Right.CANCEL_OWN if is_own else Right.CANCEL_OTHERS
    return Subject(id=request_id, account_id=stored.account_id, right=right)


async def _cancel(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    status = await console.system.cancel(subject.id)
    if status == OutboxStatus.CANCELLED:
        return Outcome(sentence="The message is cancelled.")
    return Outcome(sentence=f"It cannot be cancelled any more: it is {status}.", is_done=False)


async def _to_settle(console: Console, person: Person, request_id: str) -> Subject | None:
    stored = await _message(console, request_id)
    return None if stored is None else Subject(id=request_id, account_id=stored.account_id, right=Right.SETTLE)


async def _settle(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    if form.get("as") not in set(SettledAs):
        return Outcome(sentence="Say whether it was sent or failed.", is_done=False)
    result = await console.system.settle(subject.id, SettledAs(form["as"]))
    if isinstance(result, NotSettled):
        return not_done(result.sentence)
    return Outcome(sentence=f"{subject.id} is settled as {result.status}.")


async def _to_redrive(console: Console, person: Person, request_id: str) -> Subject | None:
    stored = await _message(console, request_id)
    return None if stored is None else Subject(id=request_id, account_id=stored.account_id, right=Right.REDRIVE)


async def _redrive(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    result = await console.system.redrive.one(subject.id)
    if isinstance(result, NotRedriven):
        return Outcome(sentence=f"{subject.id} stays as it is: {result.sentence}.", is_done=False)
    return Outcome(sentence=f"{subject.id} is back in the queue.")


SCREENS = (
    Screen(
        path="/messages",
        template="messages.html",
        title="Messages",
        section="messages",
        load=search,
        options=("id", "account", "to", "status", "before", "zone", "after"),
    ),
    Screen(path="/messages/{id}", template="message.html", title="Message", section="messages", load=show, every=FAST),
)
DEEDS = (
    Deed(action="message.cancel", path="/messages/{id}/cancel", find=_to_cancel, do=_cancel),
    Deed(action="message.settle", path="/messages/{id}/settle", find=_to_settle, do=_settle),
    Deed(action="message.redrive", path="/messages/{id}/redrive", find=_to_redrive, do=_redrive),
)
