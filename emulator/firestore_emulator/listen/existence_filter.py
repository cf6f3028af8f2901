"""The existence filter: how many documents a target has, and on request their names as a bloom filter.

A client that has taken up a target compares the count with what it holds. If they differ, something that it holds is
gone; the bloom filter tells which, with no need to send every name. Without it the client asks for everything again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import ListenResponse, Proto

BITS_FOR_A_NAME = 10
HASHES = 7
"""With ten bits a name, seven hashes mistake about one foreign name in a hundred and twenty."""
FEWEST_BYTES = 16
"""In a very small map the hashes fall on each other, and foreign names are mistaken more often."""


def existence_filter(target_id: int, matching: Collection[Location], *, with_names: bool) -> Proto:
    message = ListenResponse()
    message.filter.target_id = target_id
    message.filter.count = len(matching)
    if with_names:
        message.filter.unchanged_names.hash_count = HASHES
        message.filter.unchanged_names.bits.bitmap = _bitmap(matching)
    return message


def _bitmap(matching: Collection[Location]) -> bytes:
    """Whole bytes, so that there is no padding."""
    bitmap = bytearray(max(FEWEST_BYTES, -(-len(matching) * BITS_FOR_A_NAME // 8)))
    for location in matching:
        digest = hashlib.md5(location.name.encode(), usedforsecurity=False).digest()
        first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        for number in range(HASHES):
            bit = (first + number * second) % 2**64 % (len(bitmap) * 8)
            bitmap[bit // 8] |= 1 << bit % 8
    return bytes(bitmap)
