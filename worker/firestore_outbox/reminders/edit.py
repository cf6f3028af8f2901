"""Whether a reminder can become what an edit asks for, and what is then written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from firestore_outbox.messages import faults
from firestore_outbox.reminders.calendar import InvalidSchedule
from firestore_outbox.reminders.check import (
    KNOWN,
    NO_TIME_LEFT,
    Faulty,
    TargetDocuments,
    asked_for,
    judge_all_targets,
    next_fires,
)
from firestore_outbox.reminders.reminder import InvalidReminder, parse_reminder
from firestore_outbox.reminders.reminder_states import TRANSITIONS, ReminderEvent, ReminderStatus
from firestore_outbox.reminders.run import Target
from firestore_outbox.reminders.targets import without_values
from firestore_outbox.transitions import after

TARGETS = "targets"
EDITABLE = (*(name for name in KNOWN if name != "accountId"), TARGETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    fields: Mapping[str, Any]
    """Of the reminder's document, all but the targets."""
    targets: TargetDocuments | None
    """None: they stay as they are."""
    status: ReminderStatus
    fires: tuple[datetime, ...]


def edited(reminder_id: str, data: Mapping[str, Any], changes: Mapping[str, Any], now: datetime) -> Edited | Faulty:
    """`data` is the document as it is, which may be at fault: an edit can repair it."""
    unknown = [name[:60] for name in changes if name not in EDITABLE]
    if unknown or not changes:
        what = f"{unknown[0]} {faults.UNKNOWN}" if unknown else "nothing is changed"
        return Faulty((f"{what}; what can be changed is {', '.join(EDITABLE)}.",))
    stays = _KEPT if TARGETS in changes else _KEPT | _OF_TARGETS
    kept = {name: value for name, value in data.items() if name in stays}
    new = parse_reminder(reminder_id, {**kept, **{name: changes[name] for name in changes if name != TARGETS}})
    faulty = list(new.sentences) if isinstance(new, InvalidReminder) else []
    targets = judge_all_targets(changes[TARGETS]) if TARGETS in changes else ()
    faulty += [fault for fault in targets if isinstance(fault, str)]
    if faulty or isinstance(new, InvalidReminder):
        return Faulty(tuple(faulty))
    good = TargetDocuments(tuple(target for target in targets if isinstance(target, Target)))
    if good.has_variables and (lacking := without_values(new.parts, good.targets)):
        return Faulty(lacking)
    fields = asked_for(new)
    is_rescheduled = any(fields[name] != data.get(name) for name in ("schedule", "timezone"))
    if is_rescheduled:
        fields["rescheduledAt"] = now
        new = replace(new, rescheduled_at=now)
    try:
        fires = next_fires(new, now)
    except InvalidSchedule as error:
        return Faulty((f"schedule: {error}.",))
    if is_rescheduled and not fires:
        return Faulty((NO_TIME_LEFT,))
    status = after(TRANSITIONS, new.status, ReminderEvent.RESCHEDULE) if is_rescheduled else new.status
    return Edited(
        fields={**fields, "status": status.value},
        targets=good if TARGETS in changes else None,
        status=status,
        fires=fires,
    )


_KEPT = frozenset({*KNOWN, "status", "createdAt", "lastFireAt", "rescheduledAt"})
_OF_TARGETS = frozenset({TARGETS, "personal"})
