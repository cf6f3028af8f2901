"""One reminder: what it sends to whom and when, its runs, and the ways to change it: pause, resume, edit, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.messages.ids import is_reminder_id
from firestore_outbox.reminders.change import NotChanged
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.target_file import located
from firestore_outbox.web.console.deeds import Deed, Do, Form, Outcome, Shown, Subject, not_done
from firestore_outbox.web.console.drafts import written
from firestore_outbox.web.console.pages.wizard import MOST_BYTES, missing_sentence
from firestore_outbox.web.console.reminder_changes import Changes, changes_of, shows_parts, values_of
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer

FIRST_TARGETS = 5
"""Targets that are shown, of those in the reminder's own document."""


async def _found(console: Console, reminder_id: str) -> tuple[str, Snapshot] | None:
    """The account and the document."""
    found = await console.system.runs.reminder_document(reminder_id) if is_reminder_id(reminder_id) else None
    account_id = None if found is None else found.data.get("accountId")
    return (account_id, found) if found is not None and isinstance(account_id, str) else None


def _number_of_targets(data: Mapping[str, Any]) -> int:
    return int(data.get("targetCount") or len(data.get("targets") or ()))


async def show(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    found = await _found(console, params["id"])
    if found is None or not viewer.sees(found[0]):
        return None
    account_id, data = found[0], found[1].data
    targets = data.get("targets") or []
    return {
        "title": f"Reminder {params['id']}",
        "id": params["id"],
        "account": account_id,
        "reminder": data,
        "status": "incomplete" if data.get("incomplete") else data.get("status", ""),
        "total": _number_of_targets(data),
        "targets": [{"to": one} if isinstance(one, str) else one for one in targets[:FIRST_TARGETS]],
    }


async def edit_form(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    found = await _found(console, params["id"])
    if found is None or not viewer.may(found[0], Right.REMIND):
        return None
    account_id, stored = found
    return _form(account_id, stored, values_of(stored.data))


def _form(account_id: str, stored: Snapshot, values: Mapping[str, str], found: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "title": f"Change {stored.id}",
        "account": account_id,
        "reminder": stored.id,
        "total": _number_of_targets(stored.data),
        "shows_parts": shows_parts(stored.data),
        "values": values,
        "faults": found,
    }


async def confirm_remove(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    found = await _found(console, params["id"])
    if found is None or not viewer.may(found[0], Right.REMIND):
        return None
    own = f"/reminders/{params['id']}"
    return {
        "sentence": f"The reminder {params['id']} and its {_number_of_targets(found[1].data):,} targets are deleted. "
        "Its runs stay, and go on.",
        "is_possible": True,
        "action": f"{own}/remove",
        "text": "Remove the reminder",
        "fields": {},
        "back": own,
    }


# --- what can be done


async def _subject(console: Console, person: Person, reminder_id: str) -> Subject | None:
    found = await _found(console, reminder_id)
    return None if found is None else Subject(id=reminder_id, account_id=found[0], right=Right.REMIND)


def _setting(status: ReminderStatus) -> Do:
    async def do(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
        result = await console.system.change_reminder.set_status(subject.id, status)
        if isinstance(result, NotChanged):
            return not_done(result.sentence)
        return Outcome(sentence=f"The reminder {subject.id} is {result.status.value}.")

    return do


async def _edit(console: Console, person: Person, subject: Subject, form: Form) -> Outcome | Shown:
    found = await _found(console, subject.id)
    if found is None:
        return not_done(f"there is no reminder {subject.id}", "/runs")
    account_id, stored = found
    values = written(form)

    def again(*sentences: str) -> Shown:
        data = _form(account_id, stored, values, sentences)
        return Shown(template="reminder_new.html", title=str(data["title"]), section="runs", data=data)

    changes = changes_of(stored.data, values, console.system.clock())
    if not isinstance(changes, Changes):
        return again(*changes)
    missing = await missing_sentence(console, account_id, changes.fields.get("parts", ()))
    if missing is not None:
        return again(missing)
    result = await console.system.change_reminder.edit(subject.id, changes.fields)
    if isinstance(result, NotChanged):
        return again(located(result.sentence, changes.origins))
    return Outcome(sentence=f"The reminder {subject.id} is changed.", to=f"/reminders/{subject.id}")


async def _remove(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    result = await console.system.change_reminder.remove(subject.id)
    if isinstance(result, NotChanged):
        return not_done(result.sentence, f"/reminders/{subject.id}")
    return Outcome(sentence=f"The reminder {subject.id} is removed.", to="/runs")


SCREENS = (
    Screen(path="/reminders/{id}", template="reminder.html", title="Reminder", section="runs", load=show, every=FAST),
    Screen(
        path="/reminders/{id}/edit",
        template="reminder_new.html",
        title="Change a reminder",
        section="runs",
        load=edit_form,
        is_live=False,
    ),
    Screen(
        path="/reminders/{id}/remove",
        template="confirm.html",
        title="Remove a reminder",
        section="runs",
        load=confirm_remove,
        is_live=False,
    ),
)
DEEDS = (
    Deed(action="reminder.pause", path="/reminders/{id}/pause", find=_subject, do=_setting(ReminderStatus.PAUSED)),
    Deed(action="reminder.resume", path="/reminders/{id}/resume", find=_subject, do=_setting(ReminderStatus.ACTIVE)),
    Deed(action="reminder.edit", path="/reminders/{id}/edit", find=_subject, do=_edit, most_bytes=MOST_BYTES),
    Deed(action="reminder.remove", path="/reminders/{id}/remove", find=_subject, do=_remove),
)
