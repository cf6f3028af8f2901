"""A reminder as a person writes it into the form: what each field means, and what is wrong with it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import is_time_zone
from firestore_outbox.reminders.choices import Category, Missed, OnWindowEnd
from firestore_outbox.reminders.target_file import BadFile, TargetFile, parse_target_file

DEFAULTS: Mapping[str, str] = {
    "targets": "",
    "text": "",
    "template": "",
    "language": "en",
    "params": "",
    "media": "",
    "mime": "image/jpeg",
    "when": "once",
    "at": "",
    "cron": "",
    "timezone": "",
    "start": "6",
    "end": "18",
    "onWindowEnd": OnWindowEnd.STOP.value,
    "missed": Missed.SKIP.value,
    "category": Category.UTILITY.value,
}
"""The fields of the form, as an empty one has them."""
NO_WHEN = "When: choose the day and time, such as 2030-01-31 09:00."


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the form asks for; the reminder's own check (reminders/check.py) judges the rest."""

    fields: Mapping[str, Any]
    """Of the reminder's document."""
    file: TargetFile

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(f"line {line}" for line in self.file.lines)


def written(form: Mapping[str, str]) -> dict[str, str]:
    """What the form says, to be shown again. A file replaces the targets in the field."""
    values = {name: form.get(name, default) for name, default in DEFAULTS.items()}
    if form.get("file", "").strip():
        values["targets"] = form["file"]
    return values


def draft_of(account_id: str, values: Mapping[str, str], now: datetime) -> Draft | tuple[str, ...]:
    """The draft; or what cannot be understood of the form."""
    file = parse_target_file(values["targets"])
    hours = hours_of(values)
    has_zone = bool(values["timezone"]) and is_time_zone(values["timezone"])
    schedule = schedule_of(values, ZoneInfo(values["timezone"]) if has_zone else ZoneInfo("UTC"), now)
    parts = parts_of(values)
    found = [
        f"Targets, {file}." if isinstance(file, BadFile) else None,
        None if parts else "Message: write a text, or name a template or a file.",
        None if has_zone else f"Time zone: it {faults.NO_TIME_ZONE}.",
        hours if isinstance(hours, str) else None,
        schedule if isinstance(schedule, str) else None,
    ]
    if any(found) or isinstance(file, BadFile):
        return tuple(filter(None, found))
    fields = {
        "accountId": account_id,
        "parts": parts,
        "timezone": values["timezone"],
        "window": hours,
        "schedule": schedule,
        "onWindowEnd": values["onWindowEnd"],
        "missed": values["missed"],
        "category": values["category"],
    }
    return Draft(fields=fields, file=file)


def parts_of(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """A template, a file and a text, as far as they are given, in this order."""
    parts: list[dict[str, Any]] = []
    if name := values["template"].strip():
        params = [line for line in values["params"].splitlines() if line.strip()]
        parts.append({"type": "template", "name": name, "language": values["language"].strip(), "params": params})
    if media := values["media"].strip():
        parts.append({"type": "media", "mediaId": media, "mimeType": values["mime"].strip()})
    if text := values["text"].replace("\r\n", "\n").strip():
        parts.append({"type": "text", "text": text})
    return parts


def hours_of(values: Mapping[str, str]) -> dict[str, int] | str:
    """The delivery hours; or what is wrong with them."""
    start, end = _hour(values["start"]), _hour(values["end"])
    if start is None or end is None:
        return f"Delivery hours: {values['start']!r} to {values['end']!r} must be whole hours."
    return {"startHour": start, "endHour": end}


def _hour(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 2 else None


def schedule_of(values: Mapping[str, str], zone: ZoneInfo, now: datetime) -> dict[str, Any] | str:
    match values["when"]:
        case "now":
            return {"type": "once", "at": now}
        case "cron":
            return {"type": "cron", "cron": values["cron"].strip()}
        case _:
            try:
                at = datetime.fromisoformat(values["at"].strip())
                return {"type": "once", "at": (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)}
            except (ValueError, OverflowError):
                return NO_WHEN
