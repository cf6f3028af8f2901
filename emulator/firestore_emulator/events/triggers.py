"""Event triggers, registered by the same call as with Google's emulator, and which events a change causes.

An event is a row written inside the commit that caused it, so it exists if and only if the change does. Delivery is in
`delivery.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firestore_emulator.documents.fields import format_field_path
from firestore_emulator.documents.protos import Proto
from firestore_emulator.events.event_data import DocumentEventData
from firestore_emulator.storage.engine import Change, Engine

TYPE_PREFIX = "google.cloud.firestore.document.v1."
KINDS = ("created", "updated", "deleted", "written")


class BadTrigger(ValueError):
    """A registration that cannot be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class Trigger:
    project: str
    name: str
    event_type: str
    database: str
    """Its id, `(default)` for most."""
    pattern: str
    """`outbox/{requestId}`: a segment in braces matches any one, `{rest=**}` any number."""

    def wants(self, change: Change) -> bool:
        kind = self.event_type.removeprefix(TYPE_PREFIX).removesuffix(".withAuthContext")
        _, project, _, database = change.location.database.split("/")
        return (
            project == self.project
            and database == self.database
            and kind in ("written", kind_of(change))
            and re.fullmatch(_expression(self.pattern), "/".join(change.location.segments), re.DOTALL) is not None
        )


def kind_of(change: Change) -> str:
    if change.old is None:
        return "created"
    return "deleted" if change.new is None else "updated"


def parse_trigger(project: str, name: str, definition: Any) -> Trigger:
    """From the body of Google's `eventarcTrigger` call."""
    if not project or not name:
        raise BadTrigger("a project and an eventarcTriggerId are needed")
    if not isinstance(definition, dict):
        raise BadTrigger("the body must be a JSON object")
    event_type = definition.get("eventType")
    kinds = [TYPE_PREFIX + kind + suffix for kind in KINDS for suffix in ("", ".withAuthContext")]
    if event_type not in kinds:
        raise BadTrigger(f"eventType must be one of {', '.join(TYPE_PREFIX + kind for kind in KINDS)}")
    document = definition.get("document")
    pattern = document.get("value") if isinstance(document, dict) else None
    if not isinstance(pattern, str) or not pattern.strip("/"):
        raise BadTrigger("document.value must be a path pattern such as outbox/{requestId}")
    database = definition.get("database", "(default)")
    if not isinstance(database, str) or not database:
        raise BadTrigger("database must be the id of a database, such as (default)")
    return Trigger(project, name, event_type, database, pattern.strip("/"))


def _expression(pattern: str) -> str:
    parts = []
    for segment in pattern.split("/"):
        if re.fullmatch(r"\{[^{}]*=\*\*\}", segment):
            parts.append(".+")
        elif re.fullmatch(r"\{[^{}]*\}", segment):
            parts.append("[^/]+")
        else:
            parts.append(re.escape(segment))
    return "/".join(parts)


class Triggers:
    """The registered triggers of a server, kept with its data."""

    def __init__(self, engine: Engine) -> None:
        self._database = engine.storage.database
        self._triggers: dict[tuple[str, str], Trigger] = {}
        for project, name, definition in self._database.rows("SELECT project, name, definition FROM triggers"):
            self._triggers[project, name] = parse_trigger(project, name, json.loads(definition))
        self._engine = engine
        if self._triggers:
            engine.inside_commit.append(self._record)

    def register(self, trigger: Trigger, definition: Any) -> None:
        """Registered again under the same name, it takes the place of the earlier one."""
        with self._database.atomic():
            self._database.execute(
                "INSERT OR REPLACE INTO triggers(project, name, definition) VALUES(?, ?, ?)",
                (trigger.project, trigger.name, json.dumps(definition)),
            )
        if not self._triggers:
            self._engine.inside_commit.append(self._record)
        self._triggers[trigger.project, trigger.name] = trigger

    def _record(self, changes: Sequence[Change], commit_micros: int) -> None:
        for change in changes:
            payload: bytes | None = None
            for trigger in self._triggers.values():
                if trigger.wants(change):
                    payload = payload or event_payload(change)
                    document = "/".join(change.location.segments)
                    self._database.execute(
                        "INSERT INTO events(project, trigger, type, document, micros, payload) "
                        "VALUES(?, ?, ?, ?, ?, ?)",
                        (trigger.project, trigger.name, trigger.event_type, document, commit_micros, payload),
                    )

    def database_of(self, project: str, name: str) -> str | None:
        """None: the trigger is gone, and its events with it."""
        trigger = self._triggers.get((project, name))
        return None if trigger is None else trigger.database


def event_payload(change: Change) -> bytes:
    data: Proto = DocumentEventData()
    if change.new is not None:
        data.value.CopyFrom(change.new)
    if change.old is not None:
        data.old_value.CopyFrom(change.old)
    if change.old is not None and change.new is not None:
        old, new = change.old.fields, change.new.fields
        changed = [name for name in {*old, *new} if (name in old) != (name in new) or old[name] != new[name]]
        data.update_mask.field_paths.extend(format_field_path((name,)) for name in sorted(changed))
    payload: bytes = data.SerializeToString()
    return payload
