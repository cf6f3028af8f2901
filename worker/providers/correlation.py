"""What we hand to a provider with each part, and find again in its receipts.

A receipt tells of one part. Only the last part's receipt tells of the message: a message of two parts whose first was
accepted just before a crash is not sent, whatever the receipt of that first part says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(r"([A-Za-z0-9_-]{1,128}):([0-9]{1,4}):([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    request_id: str
    part: int
    """Counted from 0."""
    parts: int
    """How many the message has."""

    @property
    def is_last(self) -> bool:
        return self.part == self.parts - 1

    @property
    def key(self) -> str:
        """The same for each attempt at this part, and for nothing else."""
        return f"{self.request_id}:{self.part}"

    def __str__(self) -> str:
        return f"{self.request_id}:{self.part}:{self.parts}"

    @classmethod
    def parse(cls, text: str) -> Correlation | None:
        """None for what we never wrote: an account may have other senders, with marks of their own."""
        found = _FORM.fullmatch(text)
        if found is None:
            return None
        part, parts = int(found[2]), int(found[3])
        return cls(request_id=found[1], part=part, parts=parts) if part < parts else None
