"""How the slots of a gateway are divided over documents: the layout of one hot set. Theory in docs/sessions.md.

A set has one shard or more. Each is a document of its own with a fixed share of the slots, and an account belongs to
one shard by the hash of its id. So no decision needs more than one document, and the shares add up to the set's slots.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from firestore_outbox.sessions.states import Rules

DEFAULT = "default"
"""The set of accounts whose gateway has no set of its own."""
LINE_FOR_A_SLOT = 12
"""The most accounts in line for each slot of a set with several shards. A slot serves about as many in a minute, and
each place in line costs the shard's document a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Of one set. Constant."""

    name: str = DEFAULT
    slots: int = 5
    """Sessions up at once, over all shards."""
    shards: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= self.slots:
            raise ValueError("a set has at least one slot, and not more shards than slots")

    def shard_of(self, account_id: str) -> int:
        return zlib.crc32(account_id.encode()) % self.shards

    def share(self, shard: int) -> int:
        """The slots of a shard; 0 for a shard that this layout does not have."""
        if shard >= self.shards:
            return 0
        return self.slots // self.shards + (shard < self.slots % self.shards)

    def document(self, shard: int) -> str:
        """The first shard has the name of the set, as the only one of a release before shards."""
        return f"hotsets/{self.name}" if shard == 0 else f"hotsets/{self.name}~{shard}"

    @property
    def documents(self) -> list[str]:
        return [self.document(shard) for shard in range(self.shards)]

    def rules(self, rules: Rules, shard: int, slots: int) -> Rules:
        """The rules for a shard that may use this number of slots now. One slot of the whole set is no seat."""
        seats = max(0, slots - 1 if shard == 0 else slots) if rules.sticky_slots is None else rules.sticky_slots
        line = rules.longest_line if self.shards == 1 else LINE_FOR_A_SLOT * max(1, slots)
        return replace(rules, slots=slots, sticky_slots=min(seats, max(0, slots)), longest_line=line)


def layouts(text: str) -> Mapping[str, Layout]:
    """Sets by gateway: NAME=SLOTS or NAME=SLOTS/SHARDS, with commas between them."""
    found: dict[str, Layout] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, numbers = part.rpartition("=")
        slots, _, shards = numbers.partition("/")
        if not name or "/" in name or not slots.isdecimal() or not (shards or "1").isdecimal():
            raise ValueError(f"{part!r} is not HOST=SLOTS/SHARDS, such as waha-1.internal:3000=5/5")
        if name in found or name == DEFAULT:
            raise ValueError(f"{name!r} is named twice, or is the name of the default set")
        found[name] = Layout(name=name, slots=int(slots), shards=int(shards or 1))
    return found
