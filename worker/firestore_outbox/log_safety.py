"""What a log line may say: no text of a message, no address of a person, no provider's URL, no credential.

The functions here are pure. They are applied to everything that a line quotes, whatever its source says about it:

    masked        a provider's or a library's words: URLs and phone numbers become marks
    lane_shown    a lane's name: the person's address in it becomes a mark
    place_in      of a sentence about a faulty document, the field alone: the rest quotes the document
    trace_of      an exception: its types and the lines of code, without its words, which quote anything

A mark is the start of a SHA-256. The same number has the same mark in every line, so lines can be matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath

from firestore_outbox.messages.ids import account_of, recipient_of, thread_id_of

LONGEST_WORDS = 300
"""Characters of words that are not ours. More says nothing more."""
MOST_FRAMES = 30
"""Lines of code of an exception, the innermost ones."""

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\+\d[\d .()/-]{5,}\d|\d{7,}")
"""A plus and digits with the usual separators, or seven digits in a row: dates and clock times have fewer."""
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}(?:\.[A-Za-z][A-Za-z0-9_]{0,40}|\[\d{1,6}\])*")
_MASK_DIGITS = 8


def mark_of(text: str) -> str:
    return "#" + sha256(text.encode(errors="replace")).hexdigest()[:_MASK_DIGITS]


def masked(words: str) -> str:
    hidden = _URL.sub(lambda found: f"<url {mark_of(found[0])}>", words)
    return _NUMBER.sub(lambda found: mark_of(_digits(found[0])), hidden)[:LONGEST_WORDS]


def _digits(number: str) -> str:
    """The same for each way of writing a number."""
    return "".join(letter for letter in number if letter.isdigit())


def lane_shown(lane: object) -> str:
    """`inbound:shop__491701` as `inbound:shop__#1f2e3d4c`; other lanes have no address in their names."""
    name = str(lane)
    account = account_of(name)
    return name if account == name else thread_id_of(account, mark_of(recipient_of(name)))


def place_in(sentence: str) -> str:
    """`parts[0].text` of `parts[0].text is 'Dear Anna': …`."""
    first = sentence.split(" ", 1)[0].rstrip(":.,")
    return masked(first) if _FIELD.fullmatch(first) else "document"


def error_shown(error: BaseException) -> str:
    """Its type, and the status code of one that came over the network."""
    code = getattr(error, "code", None)
    status = code() if callable(code) else code
    name = getattr(status, "name", None)
    return f"{type(error).__name__}({name})" if isinstance(name, str) else type(error).__name__


def trace_of(error: BaseException) -> str:
    """The innermost cause first, as Python prints them; each with its frames, and without its words."""
    return "\n".join(_traces(error, set()))


def _traces(error: BaseException, seen: set[int]) -> Iterator[str]:
    if id(error) in seen:
        return
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _traces(before, seen)
        yield "then"
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _traces(inner, seen)
        yield "together"
    frames = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(f"  {'/'.join(PurePath(code.co_filename).parts[-2:])}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    yield from frames[-MOST_FRAMES:]
    yield error_shown(error)
