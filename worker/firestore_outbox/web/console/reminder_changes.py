"""A reminder in the form, to be edited: what the form shows of it, and what a person changed there.

What the form does not say stays as it is: without targets they stay, `keep` leaves the schedule, and parts that the
form cannot show stay unless the person writes a message in their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import is_time_zone
from firestore_outbox.reminders.target_file import BadFile, TargetFile, parse_target_file
from firestore_outbox.web.console.drafts import DEFAULTS, hours_of, parts_of, schedule_of

KEEP = "keep"
"""Of `when`: the schedule stays."""
NOTHING = "Nothing is changed."
_OF_PARTS = ("text", "template", "language", "params", "media", "mime")
_CHOICES = ("timezone", "onWindowEnd", "missed", "category")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    fields: Mapping[str, Any] = field(default_factory=dict)
    """As an edit of the reminder takes them."""
    file: TargetFile | None = None

    @property
    def origins(self) -> tuple[str, ...]:
        return () if self.file is None else tuple(f"line {line}" for line in self.file.lines)


def values_of(data: Mapping[str, Any]) -> dict[str, str]:
    """What the form shows of a stored reminder."""
    window = data.get("window") or {}
    kept = {name: str(data[name]) for name in _CHOICES if isinstance(data.get(name), str)}
    hours = {"start": str(window.get("startHour", "")), "end": str(window.get("endHour", ""))}
    parts = _of_parts(data.get("parts") or [])
    return {**DEFAULTS, **kept, **hours, **parts, "when": KEEP}


def shows_parts(data: Mapping[str, Any]) -> bool:
    """Whether the form can show its message."""
    return bool(parts_of(values_of(data)))


def changes_of(data: Mapping[str, Any], values: Mapping[str, str], now: datetime) -> Changes | tuple[str, ...]:
    """What the form asks for; or what cannot be understood of it."""
    file = parse_target_file(values["targets"]) if values["targets"].strip() else None
    hours, zone = hours_of(values), values["timezone"]
    has_zone = bool(zone) and is_time_zone(zone)
    schedule = None
    if values["when"] != KEEP:
        schedule = schedule_of(values, ZoneInfo(zone) if has_zone else ZoneInfo("UTC"), now)
    parts, before = parts_of(values), values_of(data)
    found = [
        f"Targets, {file}." if isinstance(file, BadFile) else None,
        "Message: write a text, or name a template or a file." if not parts and shows_parts(data) else None,
        None if has_zone else f"Time zone: it {faults.NO_TIME_ZONE}.",
        hours if isinstance(hours, str) else None,
        schedule if isinstance(schedule, str) else None,
    ]
    if any(found) or isinstance(file, BadFile):
        return tuple(filter(None, found))
    fields: dict[str, Any] = {name: values[name] for name in _CHOICES if values[name] != before[name]}
    if parts and any(values[name] != before[name] for name in _OF_PARTS):
        fields["parts"] = parts
    if hours != data.get("window"):
        fields["window"] = hours
    if schedule is not None:
        fields["schedule"] = schedule
    if file is not None:
        fields["targets"] = list(file.targets)
    return Changes(fields=fields, file=file) if fields else (NOTHING,)


def _of_parts(parts: list[Mapping[str, Any]]) -> dict[str, str]:
    """Empty if the form cannot show them: it has a template, a file and a text, in this order, and no more."""
    values: dict[str, str] = {}
    for part in parts:
        match part.get("type"):
            case "template":
                params = part.get("params") or []
                lines = "\n".join(str(one) for one in params) if isinstance(params, list) else ""
                shown = {"template": str(part.get("name")), "language": str(part.get("language")), "params": lines}
            case "media":
                shown = {"media": str(part.get("mediaId")), "mime": str(part.get("mimeType"))}
            case _:
                shown = {"text": str(part.get("text", ""))}
        values |= shown
    return values if parts_of({**DEFAULTS, **values}) == [dict(part) for part in parts] else {}
