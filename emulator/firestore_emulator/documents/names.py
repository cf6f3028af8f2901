"""Resource names: `projects/{project}/databases/{database}/documents/{collection}/{id}/...`.

Parsing refuses what production refuses, so that everything behind it may trust a name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from firestore_emulator.documents.protos import Proto
from firestore_emulator.rpc.errors import invalid_argument

MAX_ID_BYTES = 1_500
MAX_NAME_BYTES = 6 * 1024
MAX_DEPTH_SEGMENTS = 200
"""100 levels of subcollections: a collection id and a document id each."""

_DATABASE = re.compile(r"projects/([^/]+)/databases/([^/]+)\Z")
_RESERVED_ID = re.compile(r"__.+__", re.DOTALL)
_ESCAPED_START = "__esc"
_ESCAPES = {"0": "~", "1": "/", "2": "."}
_ESCAPE = re.compile(r"~(.)", re.DOTALL)
_NUMERIC_ID = re.compile(r"__id(-?[1-9][0-9]*)__\Z")

Kind = Literal["Collection", "Resource"]


class Location(NamedTuple):
    """A place in a database: the root (no segments), a collection (odd) or a document (even).

    A tuple, because it is hashed many times for each write, and tuples do that without running Python.
    """

    database: str
    """`projects/{project}/databases/{database}`"""
    segments: tuple[str, ...]

    @property
    def name(self) -> str:
        return "/".join((self.database, "documents", *self.segments))

    @property
    def collection_id(self) -> str:
        """Of a document: the last collection id in its name."""
        return self.segments[-2]

    @property
    def parent(self) -> Location:
        return Location(self.database, self.segments[:-1])

    def child(self, *segments: str) -> Location:
        return Location(self.database, self.segments + segments)


@lru_cache(maxsize=4_096)
def parse_database(name: str) -> str:
    """A database name, checked."""
    if not _DATABASE.match(name):
        raise invalid_argument(
            f'Invalid database name "{name}": it must look like projects/PROJECT_ID/databases/(default).'
        )
    return name


def parse_document(name: str) -> Location:
    location = _parse(name)
    if not location.segments or len(location.segments) % 2:
        raise invalid_argument(f'Document name "{name}" has no document id: a path of even length is needed.')
    return location


def parse_parent(name: str) -> Location:
    """Where a query or a listing starts: the root of a database, or a document."""
    location = _parse(name)
    if len(location.segments) % 2:
        raise invalid_argument(f'Parent "{name}" is a collection; it must be the root or a document.')
    return location


@lru_cache(maxsize=16_384)
def _parse(name: str) -> Location:
    parts = name.split("/")
    if len(parts) < 5 or parts[0] != "projects" or parts[2] != "databases" or parts[4] != "documents":
        raise invalid_argument(
            f'Resource name "{_short(name)}" must start with projects/PROJECT_ID/databases/DATABASE_ID/documents.'
        )
    if not parts[1] or not parts[3]:
        raise invalid_argument(f'Resource name "{_short(name)}" has an empty project or database id.')
    if len(name.encode()) > MAX_NAME_BYTES:
        raise invalid_argument(f"Resource name is longer than {MAX_NAME_BYTES} bytes.")
    segments = tuple(parts[5:])
    if len(segments) > MAX_DEPTH_SEGMENTS:
        raise invalid_argument("Resource name has more than 100 levels of collections.")
    for collection_id in segments[::2]:
        check_id(collection_id, "Collection")
    for document_id in segments[1::2]:
        check_id(document_id, "Resource")
    return Location("/".join(parts[:4]), segments)


def check_id(segment: str, kind: Kind, *, is_decoded: bool = False) -> None:
    """Refuses what no collection or document may be called. `is_decoded`: it was escaped, and is not any more."""
    if not segment:
        raise invalid_argument(f"{kind} id must not be empty.")
    if segment in (".", "..") and not is_decoded:
        raise invalid_argument(f'{kind} id "{segment}" is invalid because it is reserved.')
    if segment.startswith(_ESCAPED_START) and segment.endswith("__") and len(segment) >= len(_ESCAPED_START) + 2:
        check_id(_checked_escape(segment, kind), kind, is_decoded=True)
        return
    if len(segment) > MAX_ID_BYTES // 4 and len(segment.encode()) > MAX_ID_BYTES:
        raise invalid_argument(f"{kind} id is longer than {MAX_ID_BYTES} bytes.")
    # Only documents may have numeric ids, and those have the reserved form.
    is_numeric = kind == "Resource" and numeric_id(segment) is not None
    if segment.startswith("__") and _RESERVED_ID.fullmatch(segment) and not is_numeric:
        raise invalid_argument(f'{kind} id "{_short(segment)}" is invalid because it is reserved.')


def unescaped(segment: str) -> str:
    """The id that a segment stands for. `__esc~1__` is `/`, for ids that cannot be written as they are."""
    if not segment.startswith(_ESCAPED_START) or not segment.endswith("__"):
        return segment
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), segment[len(_ESCAPED_START) : -2])


def escaped_id(decoded: str) -> str:
    """The segment that stands for an id."""
    if decoded in (".", ".."):
        return f"{_ESCAPED_START}{decoded.replace('.', '~2')}__"
    if "/" in decoded:
        return f"{_ESCAPED_START}{decoded.replace('~', '~0').replace('/', '~1')}__"
    return decoded


def _checked_escape(segment: str, kind: Kind) -> str:
    decoded = unescaped(segment)
    inner = segment[len(_ESCAPED_START) : -2]
    if _ESCAPE.sub("", inner).endswith("~") or any(one not in _ESCAPES for one in _ESCAPE.findall(inner)):
        raise invalid_argument(f'{kind} id "{_short(segment)}" has an escape that is none of ~0, ~1 and ~2.')
    if escaped_id(decoded) != segment:
        raise invalid_argument(f'{kind} id "{_short(segment)}" is unnecessarily escaped.')
    return decoded


def numeric_id(segment: str) -> int | None:
    """The number in ids like `__id7__`, which sort before all others, or None."""
    if segment.startswith("__id"):
        match = _NUMERIC_ID.match(segment)
        if match and -(2**63) <= int(match[1]) < 2**63:
            return int(match[1])
    return None


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def location_of(document: Proto) -> Location:
    """Of a stored document, whose name was checked when it was written."""
    parts = document.name.split("/")
    return Location("/".join(parts[:4]), tuple(parts[5:]))
