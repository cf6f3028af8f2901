"""What people write may be longer than a part of ours may be. It is stored in several parts, joined as it was written,
and only what ten parts cannot hold is cut off, behind an ellipsis."""

from __future__ import annotations

from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import TextPart
from firestore_outbox.providers.reading import cleaned

ELLIPSIS = "…"


def text_parts(text: str, most: int = MAX_PARTS) -> tuple[TextPart, ...]:
    """At most `most`; none for an empty text."""
    text = shortened(text, most * MAX_TEXT)
    pieces = [text[start : start + MAX_TEXT] for start in range(0, len(text), MAX_TEXT)]
    return tuple(TextPart(type="text", text=piece) for piece in pieces)


def shortened(text: str, most: int = MAX_TEXT) -> str:
    """At most `most` characters, the last of them an ellipsis if the text was longer."""
    text = cleaned(text)
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
