"""A new reminder: a form, what it would do, and its confirmation. Nothing is stored before that."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from firestore_outbox.media.missing import missing_file, named_files
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.reminders.add import Differs
from firestore_outbox.reminders.check import Faulty, NewReminder
from firestore_outbox.reminders.target_file import located
from firestore_outbox.reminders.variables import filled
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Shown, Subject, account_with, not_done
from firestore_outbox.web.console.drafts import DEFAULTS, Draft, draft_of, written
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer
from firestore_outbox.wiring import storage_from

TITLE = "New reminder"
MOST_BYTES = 8_000_000
"""Of the form: about 100,000 targets with a few variables."""
PREVIEW = 5
"""Targets that are shown before they are confirmed."""
READ_TOGETHER = 3_000
"""Addresses that are looked for among those who opted out, at once: a hundred queries."""


async def form(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    account_id = params.get("account", "")
    if not account_id:
        return {"account": None, "accounts": [one for one in viewer.accounts or () if viewer.may(one, Right.REMIND)]}
    if not is_account_id(account_id) or not viewer.may(account_id, Right.REMIND):
        return None
    found = await console.system.gateway.get(f"accounts/{account_id}")
    if found is None:
        return None
    return _form(account_id, {**DEFAULTS, "timezone": str(found.data.get("timezone") or "")})


def _form(account_id: str, values: Mapping[str, str], found: Sequence[str] = ()) -> dict[str, Any]:
    return {"account": account_id, "values": values, "faults": found}


def _again(account_id: str, values: Mapping[str, str], found: Sequence[str] = ()) -> Shown:
    return Shown(
        template="reminder_new.html", title=TITLE, section="runs", data=_form(account_id, values, tuple(found))
    )


async def _check(console: Console, person: Person, subject: Subject, form: Form) -> Outcome | Shown:
    """What the reminder would do; or the form again, with its faults or because the person wants to change it."""
    system, values = console.system, written(form)
    if form.get("change"):
        return _again(subject.id, values)
    draft = await asyncio.to_thread(draft_of, subject.id, values, system.clock())
    if not isinstance(draft, Draft):
        return _again(subject.id, values, draft)
    new = _new(draft, f"reminder-{secrets.token_hex(8)}", person)
    missing = await missing_sentence(console, subject.id, draft.fields["parts"])
    foreseen = await system.remind.foresee(new)
    if isinstance(foreseen, Faulty):
        return _again(subject.id, values, [located(one, draft.origins) for one in foreseen.sentences])
    if missing is not None:
        return _again(subject.id, values, [missing])
    targets = foreseen.judged.targets
    out = await _opted_out(console, subject.id, [one.to for one in targets]) if foreseen.is_suppressing else 0
    parts, is_personal = draft.fields["parts"], bool(draft.file.variables)
    data = {
        "account": subject.id,
        "values": values,
        "reminder_id": new.reminder_id,
        "targets": draft.file.targets[:PREVIEW],
        "total": len(targets),
        "repeated": draft.file.repeated,
        "variables": draft.file.variables,
        "opted_out": out,
        "messages": [(one.to, filled(parts, one.variables) if is_personal else parts) for one in targets[:PREVIEW]],
        "fires": foreseen.judged.fires,
        "forecast": foreseen.forecast,
        "window": foreseen.judged.reminder.window,
    }
    return Shown(template="reminder_check.html", title="Check the reminder", section="runs", data=data)


async def _add(console: Console, person: Person, subject: Subject, form: Form) -> Outcome | Shown:
    """The id comes from the page, so that a second click adds nothing."""
    values = written(form)
    draft = await asyncio.to_thread(draft_of, subject.id, values, console.system.clock())
    if not isinstance(draft, Draft):
        return _again(subject.id, values, draft)
    new = _new(draft, form.get("id") or f"reminder-{secrets.token_hex(8)}", person)
    result = await console.system.remind(new)
    if isinstance(result, Differs):
        return not_done("This reminder was added already", "/runs#reminders")
    if isinstance(result, Faulty):
        return _again(subject.id, values, [located(one, draft.origins) for one in result.sentences])
    sentence = f"The reminder {new.reminder_id} is added for {result.targets:,} targets."
    return Outcome(sentence=sentence, to=f"/reminders/{new.reminder_id}")


def _new(draft: Draft, reminder_id: str, person: Person) -> NewReminder:
    return NewReminder(reminder_id=reminder_id, fields=draft.fields, targets=draft.file.targets, created_by=person.uid)


async def missing_sentence(console: Console, account_id: str, parts: Sequence[Mapping[str, Any]]) -> str | None:
    """If the message has a file that storage does not have; None also if the console knows no storage."""
    storage = storage_from(console.system.settings) if named_files(parts) else None
    if storage is None:
        return None
    try:
        missing = await missing_file(storage, account_id, parts)
    finally:
        storage.close()
    if missing is None:
        return None
    return f"Message: there is no file {missing.media_id}. Add it: outbox media add FILE --account {account_id}"


async def _opted_out(console: Console, account_id: str, addresses: Sequence[str]) -> int:
    """Costs a read for thirty addresses."""
    among = console.system.suppressions.among
    pages = [addresses[start : start + READ_TOGETHER] for start in range(0, len(addresses), READ_TOGETHER)]
    return sum([len(await among(account_id, page)) for page in pages])


_ACCOUNT = account_with(Right.REMIND)
SCREENS = (
    Screen(
        path="/reminders/new",
        template="reminder_new.html",
        title=TITLE,
        section="runs",
        load=form,
        options=("account",),
        is_live=False,
    ),
)
DEEDS = (
    Deed(
        action="reminder.check",
        path="/accounts/{id}/reminders/check",
        find=_ACCOUNT,
        do=_check,
        most_bytes=MOST_BYTES,
    ),
    Deed(
        action="reminder.add",
        path="/accounts/{id}/reminders/add",
        find=_ACCOUNT,
        do=_add,
        most_bytes=MOST_BYTES,
    ),
)
