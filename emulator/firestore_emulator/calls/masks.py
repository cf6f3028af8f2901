"""The fields of a document that a request asks for."""

from __future__ import annotations

from firestore_emulator.documents.fields import FieldPath, parse_field_path, project
from firestore_emulator.documents.protos import Proto


def mask_of(request: Proto) -> list[FieldPath] | None:
    return [parse_field_path(path) for path in request.mask.field_paths] if request.HasField("mask") else None


def masked(document: Proto, mask: list[FieldPath] | None) -> Proto:
    return document if mask is None else project(document, mask)
