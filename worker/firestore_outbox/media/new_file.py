"""A file that an app wants to upload: whether it may, before a byte of it is sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHA256 = re.compile(r"[0-9a-f]{64}")
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")
LONGEST_FILENAME = 256
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    sha256: str
    """Of the content, in lower-case hexadecimal. It becomes the mediaId."""
    size_bytes: int
    mime_type: str
    filename: str | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    sentence: str


@dataclass(frozen=True, slots=True)
class TooLarge:
    sentence: str


@dataclass(frozen=True, slots=True)
class WrongType:
    sentence: str


def fault_of(file: NewFile, *, max_bytes: int, types: Sequence[str]) -> Malformed | TooLarge | WrongType | None:
    """None: it may be uploaded. `types` are media types; `image/*` stands for all that begin so."""
    if not SHA256.fullmatch(file.sha256):
        return Malformed("sha256 must be the SHA-256 of the content: 64 of 0-9 and a-f")
    if file.size_bytes < 1:
        return Malformed("bytes must be 1 or more: the file is empty")
    if file.filename is not None and not _is_name(file.filename):
        return Malformed(f"filename must be 1 to {LONGEST_FILENAME} characters, without slashes and control characters")
    if not _TYPE.fullmatch(file.mime_type):
        return Malformed("mimeType must be a media type without parameters, such as image/png")
    if not any(_covers(one, file.mime_type) for one in types):
        return WrongType(f"files of the type {file.mime_type[:80]} are not taken; taken are {', '.join(types)}")
    if file.size_bytes > max_bytes:
        most = f"{max_bytes / _MEGABYTE:.1f}".removesuffix(".0")
        return TooLarge(f"the file has {file.size_bytes / _MEGABYTE:.1f} MB; at most {most} MB are taken")
    return None


def _covers(pattern: str, mime_type: str) -> bool:
    return mime_type.startswith(pattern[:-1]) if pattern.endswith("*") else mime_type == pattern


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_FILENAME and text.isprintable() and "/" not in text and "\\" not in text
