"""One write, decided purely: what a document becomes, or why the write is refused.

A commit is a list of writes over a few documents. `DraftState` holds a document as the commit has left it so far; the
engine stores the final states all at once or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.unknown_fields import UnknownFieldSet

from firestore_emulator.documents.fields import FieldPath, merge_masked, parse_field_path
from firestore_emulator.documents.names import Location, parse_document
from firestore_emulator.documents.protos import Document, Proto
from firestore_emulator.documents.times import micros_of
from firestore_emulator.documents.transforms import apply_transforms, check_transforms
from firestore_emulator.documents.values import check_fields
from firestore_emulator.rpc.errors import already_exists, failed_precondition, invalid_argument, not_found

VERIFY_FIELD = 5
"""The number of the field `verify` of a `Write`, which the published protocol leaves out."""


class CheckedWrite(NamedTuple):
    """A write whose form is right; whether it may be applied depends on the document it meets."""

    location: Location
    document: Proto | None
    """The fields to write; None for a delete, and for a write that only transforms."""
    is_delete: bool
    mask: tuple[FieldPath, ...] | None
    """None: the whole document is replaced."""
    transforms: tuple[Proto, ...]
    must_exist: bool | None
    must_have_update_time: int | None
    """In microseconds."""
    is_verify: bool = False
    """Only the precondition counts; nothing is written."""


@dataclass(slots=True)
class DraftState:
    stored: Proto | None
    """As it was before the commit."""
    current: Proto | None
    """As the writes so far have left it."""
    was_deleted: bool = False
    """Whether a write of this commit deleted it, even if a later one made it again."""
    is_written: bool = False
    """Whether a write of this commit was applied to it."""
    touched: set[str] | None = field(default_factory=set)
    """The top-level fields that may have changed; None: all of them may."""


def check_write(write: Proto, database: str) -> CheckedWrite:
    operation = write.WhichOneof("operation")
    has_mask = write.HasField("update_mask")
    mask = tuple(map(parse_field_path, write.update_mask.field_paths)) if has_mask else None
    must_exist, must_have_update_time = _precondition(write)
    is_verify = False
    match operation:
        case "update":
            check_fields(write.update.fields)
            check_transforms(write.update_transforms)
            name, document, transforms = write.update.name, write.update, tuple(write.update_transforms)
        case "delete":
            if has_mask:
                raise invalid_argument("a delete must not specify a document mask.")
            if write.update_transforms:
                raise invalid_argument("a delete must not specify a update transform.")
            name, document, transforms = write.delete, None, ()
        case "transform":
            if has_mask:
                raise invalid_argument("a transform must not specify a document mask.")
            if not write.transform.field_transforms:
                raise invalid_argument("The list of FieldTransform must not be empty.")
            check_transforms(write.transform.field_transforms)
            name, document, transforms = (
                write.transform.document,
                None,
                tuple(write.transform.field_transforms),
            )
        case _:
            verified = _verified(write)
            if verified is None:
                raise invalid_argument("empty write operation")
            if has_mask or write.update_transforms:
                raise invalid_argument("a verify must not specify a document mask or update transforms.")
            if must_exist is None and must_have_update_time is None:
                raise invalid_argument("a verify must contain a precondition")
            name, document, transforms, is_verify = verified, None, (), True
    location = parse_document(name)
    if location.database != database:
        raise invalid_argument(f'The document "{name}" is not in the database "{database}" of the request.')
    return CheckedWrite(
        location=location,
        document=document,
        is_delete=operation == "delete",
        mask=mask,
        transforms=transforms,
        must_exist=must_exist,
        must_have_update_time=must_have_update_time,
        is_verify=is_verify,
    )


def _verified(write: Proto) -> str | None:
    """The document that a `verify` names.

    The web and mobile clients send it for what a transaction read and did not write. The published definition of the
    protocol leaves the operation out, so that here it is a field without a name.
    """
    unnamed = UnknownFieldSet(write)
    for one in (unnamed[index] for index in range(len(unnamed))):
        if one.field_number == VERIFY_FIELD and isinstance(one.data, bytes):
            return one.data.decode(errors="replace")
    return None


def check_repeated(writes: Sequence[CheckedWrite]) -> None:
    """Writes of one commit to one document must not contradict each other, whatever is stored."""
    earlier: dict[Location, CheckedWrite] = {}
    version: dict[Location, int | None] = {}
    for write in writes:
        first = earlier.get(write.location)
        if first is not None and (first.is_verify or write.is_verify):
            raise invalid_argument("A document that is verified must stand only once in a request.")
        if first is not None:
            absent = first.is_delete
            wants_present = write.must_exist is True or (
                write.must_have_update_time is not None and not write.is_delete
            )
            if (absent and wants_present) or (not absent and write.must_exist is False):
                raise invalid_argument(f"Cannot {_verb(first)} then {_verb(write)} an entity in the same request.")
            wanted = write.must_have_update_time
            if wanted is not None and wanted != version[write.location]:
                raise invalid_argument(
                    "Cannot collapse mutations with different version preconditions "
                    f"({version[write.location]} and {wanted})"
                )
        else:
            version[write.location] = write.must_have_update_time
        earlier[write.location] = write


def _verb(write: CheckedWrite) -> str:
    if write.is_delete:
        return "delete"
    if write.must_exist is False:
        return "insert"
    return "update" if write.must_exist or write.must_have_update_time is not None else "upsert"


def _precondition(write: Proto) -> tuple[bool | None, int | None]:
    match write.current_document.WhichOneof("condition_type") if write.HasField("current_document") else None:
        case "exists":
            return write.current_document.exists, None
        case "update_time":
            stamp = write.current_document.update_time
            if stamp.nanos % 1000:
                raise invalid_argument("timestamp cannot have more than microseconds precision")
            return None, micros_of(stamp)
    return None, None


def apply_write(write: CheckedWrite, draft: DraftState, request_time_micros: int) -> list[Proto]:
    """Moves the draft on; returns what the transforms answer."""
    if not draft.is_written:
        _check_precondition(write, draft.stored)  # later writes were held against the first by `check_repeated`
    if write.is_verify:
        draft.current = _copy(draft.stored)
        return []
    draft.is_written = True
    _touch(write, draft)
    if write.is_delete:
        draft.current = None
        draft.was_deleted = True
        return []
    if write.document is not None and write.mask is None and not write.transforms:
        draft.current = write.document  # as it came: no other reference exists, and only its times will be set
        return []
    changed = Document()
    if write.document is not None and write.mask is None:
        changed.CopyFrom(write.document)  # a commit may be drafted twice, and transforms change it in place
    elif draft.current is not None:
        changed.CopyFrom(draft.current)
    else:
        changed.name = write.location.name
    if write.document is not None and write.mask is not None:
        merge_masked(changed.fields, write.document.fields, write.mask)
    answers = apply_transforms(changed.fields, write.transforms, request_time_micros)
    draft.current = changed
    return answers


def _copy(document: Proto | None) -> Proto | None:
    if document is None:
        return None
    copy = Document()
    copy.CopyFrom(document)
    return copy


def _touch(write: CheckedWrite, draft: DraftState) -> None:
    if draft.current is None or write.is_delete or (write.mask is None and write.document is not None):
        draft.touched = None
    elif draft.touched is not None:
        draft.touched.update(path[0] for path in write.mask or ())
        draft.touched.update(parse_field_path(transform.field_path)[0] for transform in write.transforms)


def _check_precondition(write: CheckedWrite, current: Proto | None) -> None:
    if write.must_exist is True and current is None:
        raise not_found(f"No document to update: {write.location.name}")
    if write.must_exist is False and current is not None:
        raise already_exists(f"Document already exists: {write.location.name}")
    wanted = write.must_have_update_time
    if wanted is None:
        return
    stored = 0 if current is None else micros_of(current.update_time)
    if current is not None and wanted > stored:
        raise invalid_argument("Invalid base version, it is greater than the stored version")
    if stored != wanted:
        raise failed_precondition(f"the stored version ({stored}) does not match the required base version ({wanted})")
