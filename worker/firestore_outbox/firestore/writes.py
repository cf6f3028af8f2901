"""The writes of a commit: what to change, and what the document must be like for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from firestore_outbox.firestore.protos import Proto
from firestore_outbox.firestore.values import Version, to_proto

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A field's name that needs no quotes in a path."""


class ServerTime:
    """Put as a field's value, it becomes the time of the commit."""


SERVER_TIME = ServerTime()


@dataclass(frozen=True, slots=True)
class Increment:
    by: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Put as a field's value in an update, it removes the field."""


DELETE = Delete()


@dataclass(frozen=True, slots=True)
class WriteOp:
    """One write of a commit. Made by `create`, `update`, `upsert`, `delete`."""

    path: str
    fields: Mapping[str, Any]
    """Keys are top-level names, or for `nested` ones tuples' paths joined by dots (see `update`)."""
    masked: bool
    exists: bool | None = None
    version: Version | None = None
    nested: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    """(map field, key) -> value: entries of a map written without touching its other entries."""
    is_deletion: bool = False


def create(path: str, fields: Mapping[str, Any]) -> WriteOp:
    return WriteOp(path, fields, masked=False, exists=False)


def update(
    path: str,
    fields: Mapping[str, Any],
    *,
    version: Version | None,
    nested: Mapping[tuple[str, str], Any] | None = None,
) -> WriteOp:
    """Changes these fields and no others. With a version, only if the document is as it was read; otherwise only if
    it exists."""
    return WriteOp(path, fields, masked=True, exists=None if version else True, version=version, nested=nested or {})


def upsert(path: str, fields: Mapping[str, Any]) -> WriteOp:
    """Changes these fields, and makes the document if it does not exist."""
    return WriteOp(path, fields, masked=True)


def delete(path: str, *, version: Version | None = None) -> WriteOp:
    """Removes the document, if it is there. With a version, only if it is as it was read."""
    return WriteOp(path, {}, masked=False, version=version, is_deletion=True)


def add_write(request: Proto, root: str, write: WriteOp) -> None:
    """To a commit, on documents below that root."""
    proto = request.writes.add()
    if write.is_deletion:
        proto.delete = f"{root}/{write.path}"
        if write.version is not None:
            proto.current_document.update_time.seconds, proto.current_document.update_time.nanos = write.version
        return
    proto.update.name = f"{root}/{write.path}"
    fields = proto.update.fields
    masked: list[str] = []
    for name, value in write.fields.items():
        if isinstance(value, ServerTime):
            proto.update_transforms.add(field_path=name, set_to_server_value=1)
            continue
        if isinstance(value, Increment):
            proto.update_transforms.add(field_path=name).increment.integer_value = value.by
            continue
        masked.append(_path(name))
        if not isinstance(value, Delete):
            to_proto(value, fields[name])
    for (name, key), value in write.nested.items():
        masked.append(f"{name}.{_quoted(key)}")
        if not isinstance(value, Delete):
            to_proto(value, fields[name].map_value.fields[key])
    if write.masked:
        proto.update_mask.SetInParent()
        proto.update_mask.field_paths.extend(masked)
    if write.version is not None:
        proto.current_document.update_time.seconds, proto.current_document.update_time.nanos = write.version
    elif write.exists is not None:
        proto.current_document.exists = write.exists


@lru_cache(maxsize=1024)
def _path(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _quoted(name)


def _quoted(key: str) -> str:
    return "`" + key.replace("\\", "\\\\").replace("`", "\\`") + "`"
