"""What is wrong with a field, in words: one sentence for a fault, wherever it is found.

The clients, the HTTP API, the commands, the check of a reminder and the worker all say `{field} {clause}`, with the
clauses below. client/message.js has the same ones; tests/messages/test_faults.py compares them.

This module uses the standard library alone: backends import it without the worker and its libraries.
"""

from __future__ import annotations

from firestore_outbox.messages.limits import LONGEST_AHEAD, MAX_KEY_VERSION, MAX_NAME, MAX_PARTS, MAX_SEALED

MISSING = "is missing"
EMPTY = "is empty"
TOO_SHORT = "is too short"
UNKNOWN = "is unknown"
NO_TEXT = "must be a text"
NO_LIST = "must be a list"
NO_LIST_OF_TEXTS = "must be a list of texts"
NO_TIME = "must be a time with an offset, such as 2030-01-31T09:00:00Z"
NO_TIME_ZONE = "must be a time zone such as Europe/Berlin"
TOO_FAR_AHEAD = f"is more than {LONGEST_AHEAD.days} days ahead"

REQUEST_ID = "must be 8 to 128 of A-Z, a-z, 0-9, _ and -, and must not begin and end with two underscores"
ACCOUNT_ID = "must be 1 to 128 characters without a slash and without two underscores in a row"
REMINDER_ID = "must be 1 to 100 of A-Z, a-z, 0-9, _ and -, with a letter or a digit in front"
ADDRESS = "must be 1 to 256 characters without slashes and blanks, and with no underscore in front"
MEDIA_ID = f"must be 1 to {MAX_NAME} characters without a slash"
MEDIA_TYPE = "must be a media type such as image/png"
PRIORITY = "must be urgent, normal or bulk"
PARTS = f"must be a list of 1 to {MAX_PARTS} parts"
PART_TYPE = "must be text, media, template or sealed"
CIPHERTEXT = f"must be 1 to {MAX_SEALED:,} of A-Z, a-z, 0-9, _ and -: base64url without padding"
KEY_VERSION = f"must be a whole number from 1 to {MAX_KEY_VERSION:,}"
SEALED_IN_A_RUN = "cannot be sealed: a sealed part belongs to one message, and a run makes many"
HEADER_FILE = "must be a list of texts, or one of image, video and document"
TEXT_OR_PARTS = "a message has either text or parts"


def too_long(length: int, most: int) -> str:
    return f"has {length:,} characters; at most {most:,} are allowed"


def too_many(entries: int, most: int) -> str:
    return f"has {entries:,} entries; at most {most:,} are allowed"


def too_many_bytes(size: int, most: int) -> str:
    return f"has {size:,} bytes of text; at most {most:,} are allowed"


def no_field_of(kind: str) -> str:
    """Of a part of that type."""
    return f"is no field of a {kind} part"


def before(earlier: str) -> str:
    """Of a deadline: `sendBy is before sendAt, …`."""
    return f"is before {earlier}, so the message could never be sent"
