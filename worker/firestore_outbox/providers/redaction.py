"""A provider's own words, made fit for errors and logs: without our secrets, and without what people wrote.

Some providers quote the call that they refuse. Whatever of it came from us is blanked out, also where it was cut short
by them: a quotation is found by its pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from firestore_outbox.messages.model import Part
from firestore_outbox.providers.answers import LONGEST_DETAIL

SHORTEST = 3
"""Shorter texts give nothing away, and are part of any sentence."""
PIECE = 12
"""A quotation of twice this length holds at least one whole piece of what it quotes."""
BLANK = "…"
_NAMES = {"type", "mimeType", "mediaId", "name", "language"}


def redacted(words: str, hide: Iterable[str]) -> str:
    for text in sorted({one for one in hide if len(one) >= SHORTEST}, key=len, reverse=True):
        for form in {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}:
            words = words.replace(form, BLANK)
            for start in range(0, len(form) - PIECE + 1, PIECE):
                words = words.replace(form[start : start + PIECE], BLANK)
    return re.sub(f"{BLANK}+", BLANK, words)[:LONGEST_DETAIL]


def written_in(part: Part) -> tuple[str, ...]:
    """All that people wrote in a part; not the names of templates and files, which an operator will want to see."""
    return tuple(_texts(part.model_dump(exclude=_NAMES, exclude_none=True).values()))


def _texts(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from _texts(value)
        elif isinstance(value, dict):
            yield from _texts(value.values())
