"""How many rows a page has."""

from __future__ import annotations

from firestore_emulator.rpc.errors import invalid_argument


def page_size(asked: int, most: int) -> int:
    if asked < 0:
        raise invalid_argument("page_size must not be negative.")
    return min(asked or most, most)
