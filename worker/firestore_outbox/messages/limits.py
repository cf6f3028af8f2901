"""How large a message and its parts may be. firestore.rules and the JavaScript client have the same numbers.

This module uses the standard library alone: backends import it without the worker and its libraries.
"""

from __future__ import annotations

import re
from datetime import timedelta

MAX_TEXT = 4096
"""Characters of a text, and of a caption."""
MAX_PARTS = 10
MAX_PARAMS = 100
"""Entries in a template's `params`."""
MAX_PARAM = 1024
"""Characters of one entry."""
MAX_PARAMS_BYTES = 32 * 1024
"""UTF-8 size of all entries of a template's `params`."""
MAX_PARTS_BYTES = 240 * 1024
"""UTF-8 size of all texts in the parts of a message. The worker fails documents above 256 KiB; the rest is for ids,
field names and what the worker writes."""
MAX_NAME = 512
"""Characters of a template's name, of a file's name and of a mediaId."""
MIN_LANGUAGE, MAX_LANGUAGE = 2, 35
MAX_MEDIA_TYPE = 200
SHOWN_TEXT = 200
"""Characters of a message that its thread's own document shows."""
LONGEST_AHEAD = timedelta(days=365)
"""How far ahead a message may be scheduled."""

MAX_SEALED = 48 * 1024
"""Characters of a sealed part's `ciphertext`: the longest text or the largest template, sealed and in base64."""
MAX_KEY_VERSION = 1_000_000

_MEDIA_ID = re.compile(r"[^/]{1,512}")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;.*)?", re.ASCII)
_CIPHERTEXT = re.compile(r"[A-Za-z0-9_-]+")


def is_media_id(text: str) -> bool:
    return _MEDIA_ID.fullmatch(text) is not None


def is_media_type(text: str) -> bool:
    return len(text) <= MAX_MEDIA_TYPE and _MEDIA_TYPE.fullmatch(text) is not None


def is_ciphertext(text: str) -> bool:
    """Whether it is unpadded base64url."""
    return len(text) <= MAX_SEALED and _CIPHERTEXT.fullmatch(text) is not None


def is_key_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_KEY_VERSION


def bytes_of(text: str) -> int:
    """Its size in UTF-8; half a surrogate pair, which some other check refuses, counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
