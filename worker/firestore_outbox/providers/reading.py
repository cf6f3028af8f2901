"""Reading a webhook's body with suspicion: the JSON in it, and each of its events by itself.

JSON may hold half of a surrogate pair, as an escape or as raw bytes. No document stores such a text. In what people
wrote, a question mark takes its place; an id or an address with one is refused, because two ids must not become one.

An adapter that fails costs the event that it failed at, and no other: a provider that hears of an error sends the same
body again, for days. What the exception says is left out, because it quotes what people wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from firestore_outbox.providers.protocol import Unrecognised, WebhookEvent

NOT_JSON = Unrecognised(detail="the body is not JSON")

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_PLAIN_NAME = re.compile(r"[A-Za-z_]{1,40}", re.ASCII)


def json_in(raw_body: bytes) -> Any:
    """The value in it; `NOT_JSON` if there is none."""
    try:
        return json.loads(raw_body)
    except (ValueError, RecursionError):
        return NOT_JSON


def cleaned(text: str) -> str:
    """What a person wrote, as a document can store it."""
    return _HALF_PAIR.sub("?", text)


def event_in(read: Callable[[Any], WebhookEvent], item: Any) -> WebhookEvent:
    """What `read` makes of one event; `Unrecognised` for whatever it raises."""
    try:
        return read(item)
    except Exception as error:  # noqa: BLE001 - the border: the other events of the body still count
        return Unrecognised(detail=fault_in(error))


def fault_in(error: Exception) -> str:
    """Where a reader failed and how, without a word of what it read."""
    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(step) for step in fault["loc"] if isinstance(step, int) or _PLAIN_NAME.fullmatch(step))
        return f"an event has a fault at {where or 'its top'}: {fault['type']}"
    if isinstance(error, RecursionError):
        return "an event is nested too deeply"
    return f"an event could not be read: {type(error).__name__}{_place(error)}"


def _place(error: Exception) -> str:
    """The line of code that raised it."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return "" if step is None else f" at {PurePath(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}"
