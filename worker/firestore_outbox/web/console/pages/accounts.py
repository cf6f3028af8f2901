"""Accounts: one with its settings, session, members and what people did with it; its contacts; pause and resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firestore_outbox.accounts.administration import NoAccount
from firestore_outbox.messages.ids import is_account_id, is_document_id
from firestore_outbox.sessions.store import current_path
from firestore_outbox.web.console.deeds import Deed, Do, Form, Outcome, Subject, account_with
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer

PAGE = 50
"""Contacts on a page."""


async def show(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    account_id = params["id"]
    if not is_account_id(account_id) or not viewer.sees(account_id):
        return None
    found = await console.system.administration.show(account_id)
    if isinstance(found, NoAccount):
        return None
    session = await console.system.gateway.get(current_path(account_id))
    return {
        "title": f"Account {account_id}",
        "id": account_id,
        "tile": await console.system.overview.account(account_id, found.settings),
        "settings": sorted(_flat(found.settings)),
        "members": sorted(found.members.items()),
        "actions": found.actions if viewer.may(account_id, Right.ADMINISTER) else None,
        "session": None if session is None else session.data,
    }


def _flat(fields: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Dotted names, as `outbox accounts set` takes them."""
    rows: list[tuple[str, Any]] = []
    for name, value in fields.items():
        rows += _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else [(f"{above}{name}", value)]
    return rows


async def contacts(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    account_id, after = params["id"], params.get("after")
    if not is_account_id(account_id) or not viewer.sees(account_id):
        return None
    behind = after if after and is_document_id(after) else None
    found = await console.system.sessions.contacts(account_id, PAGE, behind)
    rows = [{"address": one.id, **one.data} for one in found]
    return {
        "title": f"Contacts of {account_id}",
        "id": account_id,
        "rows": rows,
        "more": rows[-1]["address"] if len(rows) == PAGE else None,
    }


def _steer(*, pause: bool) -> Do:
    async def do(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
        steer = console.system.pause if pause else console.system.resume
        if not await steer(subject.id):
            return Outcome(sentence=f"There is no account {subject.id}.", is_done=False)
        return Outcome(sentence=f"{subject.id} is paused." if pause else f"{subject.id} sends again.")

    return do


_ACCOUNT = account_with(Right.STEER_ACCOUNT)
SCREENS = (
    Screen(path="/accounts/{id}", template="account.html", title="Account", section="now", load=show),
    Screen(
        path="/accounts/{id}/contacts",
        template="contacts.html",
        title="Contacts",
        section="now",
        load=contacts,
        options=("after",),
        is_live=False,
    ),
)
DEEDS = (
    Deed(
        action="account.pause",
        path="/accounts/{id}/pause",
        find=_ACCOUNT,
        do=_steer(pause=True),
    ),
    Deed(
        action="account.resume",
        path="/accounts/{id}/resume",
        find=_ACCOUNT,
        do=_steer(pause=False),
    ),
)
