"""What happened to a stream's targets, as the messages that tell it.

One document that several targets watch is reported once: one message names all the targets that show it, and all that
no longer do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import ListenResponse, Proto, TargetChange
from firestore_emulator.documents.times import set_stamp
from firestore_emulator.listen.resume import token_at
from firestore_emulator.listen.targets import Deleted, Effect, Left, Shown

_kind = TargetChange.TargetChangeType.Value
ADD, REMOVE, CURRENT, RESET, NO_CHANGE = map(_kind, ("ADD", "REMOVE", "CURRENT", "RESET", "NO_CHANGE"))


def document_messages(effects: Iterable[Effect], micros: int) -> Iterator[Proto]:
    """Effects of one moment, in the order in which their documents first come."""
    told: dict[Location, list[Effect]] = {}
    for effect in effects:
        told.setdefault(effect.location, []).append(effect)
    for location, same in told.items():
        yield from _about_one(location, same, micros)


def _about_one(location: Location, effects: list[Effect], micros: int) -> Iterator[Proto]:
    gone = [effect.target_id for effect in effects if not isinstance(effect, Shown)]
    changes: list[Proto] = []
    for effect in effects:
        if isinstance(effect, Shown):
            _change_to(effect.document, changes).target_ids.append(effect.target_id)
    become = [effect.document for effect in effects if isinstance(effect, Left) and effect.document is not None]
    if become and not changes:
        # Sent although no target shows it: a client that keeps documents would go on taking the old state for true.
        _change_to(become[0], changes)
    if changes:
        changes[0].document_change.removed_target_ids.extend(gone)
        yield from changes
        return
    message = ListenResponse()
    is_deleted = any(isinstance(effect, Deleted) for effect in effects)
    told = message.document_delete if is_deleted else message.document_remove
    told.document = location.name
    told.removed_target_ids.extend(gone)
    set_stamp(told.read_time, micros)
    yield message


def _change_to(document: Proto, changes: list[Proto]) -> Proto:
    """The change that shows just this; targets with different projections show one document differently."""
    for message in changes:
        if message.document_change.document == document:
            return message.document_change
    message = ListenResponse()
    message.document_change.document.CopyFrom(document)
    changes.append(message)
    return message.document_change


def target_change(kind: int, target_ids: list[int], micros: int | None = None) -> Proto:
    """With a time, this is a moment at which the targets (none: all) are consistent, and can be taken up again."""
    message = ListenResponse()
    change = message.target_change
    change.target_change_type = kind
    change.target_ids.extend(target_ids)
    change.SetInParent()
    if micros is not None:
        set_stamp(change.read_time, micros)
        change.resume_token = token_at(micros)
    return message
