"""What we hand to a provider with each part, and find again in its receipts.

A receipt tells of one part. Only the last part's receipt tells of the message: a message of two parts whose first was
accepted just before a crash is not sent, whatever the receipt of that first part says.

When an operator puts back what had failed, a new series of sends begins, with marks and keys of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from firestore_outbox.messages.ids import is_request_id
from firestore_outbox.messages.model import OutboxMessage

_FORM = re.compile(r"([^:]+):([0-9]{1,4}):([0-9]{1,4})(?::([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The mark of one part. `str()` is what a provider echoes; `key` is an idempotency key."""

    request_id: str
    part: int
    """Counted from 0."""
    parts: int
    """The number of parts of the message."""
    series: int = 0
    """Grows when an operator redrives the message; omitted from the mark while 0."""

    @classmethod
    def of(cls, message: OutboxMessage, part: int) -> Correlation:
        return cls(request_id=message.request_id, part=part, parts=len(message.parts), series=message.series)

    @property
    def is_last(self) -> bool:
        return self.part == self.parts - 1

    @property
    def key(self) -> str:
        """The same for each attempt at this part in a series, and for no other part."""
        return f"{self.request_id}:{self.part}{self._series}"

    def __str__(self) -> str:
        return f"{self.request_id}:{self.part}:{self.parts}{self._series}"

    @property
    def _series(self) -> str:
        return f":{self.series}" if self.series else ""

    @classmethod
    def parse(cls, text: str) -> Correlation | None:
        """Read a mark. None: it is not one of ours; an account may have other senders."""
        found = _FORM.fullmatch(text)
        if found is None or not is_request_id(found[1]):
            return None
        part, parts, series = int(found[2]), int(found[3]), int(found[4] or 0)
        return cls(request_id=found[1], part=part, parts=parts, series=series) if part < parts else None
