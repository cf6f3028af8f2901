"""What Interakt's refusals mean.

A call is refused by an HTTP status, or by 200 with `"result": false`, and the reason is a sentence; there are no codes.
All of these are refusals for good, so a sentence that is not known costs a less exact code and nothing else.

A message that was accepted may fail later, and the receipt of that names WhatsApp's own code: Interakt hands them on.
Those are in whatsapp_codes.py.
"""

from __future__ import annotations

from firestore_outbox.providers.outcome import ErrorCode

SENTENCES: tuple[tuple[str, ErrorCode], ...] = (
    ("24 hour", ErrorCode.WINDOW_CLOSED),
    ("customer is not available", ErrorCode.WINDOW_CLOSED),  # has never written: only a template may go
    ("phone", ErrorCode.RECIPIENT_INVALID),
    ("country code", ErrorCode.RECIPIENT_INVALID),
    ("countrycode", ErrorCode.RECIPIENT_INVALID),
    ("media", ErrorCode.MEDIA_MISSING),
    ("template", ErrorCode.INVALID_MESSAGE),
    ("required", ErrorCode.INVALID_MESSAGE),
)
"""Part of a sentence, in small letters, and its meaning. The first that is found counts."""


def refusal(sentence: str) -> ErrorCode:
    lower = sentence.lower()
    return next((code for part, code in SENTENCES if part in lower), ErrorCode.REJECTED)
