"""What a form says: as a browser sends it with fields alone, or with files (RFC 7578)."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

MOST_FIELDS = 500
_BOUNDARY = re.compile(r'multipart/form-data\s*;.*?boundary="?([0-9A-Za-z\'()+_,./:=? -]{1,70})"?', re.IGNORECASE)
_NAME = re.compile(rb'content-disposition: *form-data;.*?\bname="([^"]*)"', re.IGNORECASE)


def form_of(body: bytes, content_type: str = "") -> dict[str, str]:
    """The last of several values of one name; empty if it is not a form. A file is its text; one that is not UTF-8 has
    replacement characters in it."""
    try:
        found = _BOUNDARY.match(content_type)
        if found is not None:
            return _with_files(body, found[1].rstrip().encode())
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def _with_files(body: bytes, boundary: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for piece in (b"\r\n" + body).split(b"\r\n--" + boundary, MOST_FIELDS)[1:]:
        head, is_field, content = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if is_field and name is not None:
            fields[name[1].decode()] = content.decode("utf-8-sig", errors="replace")
    return fields
