"""An index key as text, for people who read a report."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

from firestore_emulator.documents import keys

LONGEST = 60
"""Characters."""


def shown_key(key: bytes) -> str:
    """The value that the key was made of, shortened; of nested values only their type."""
    match key[0]:
        case keys.STRING:
            text = key[1:-2].replace(b"\x00\xff", b"\x00").decode(errors="replace")
            return repr(text if len(text) <= LONGEST else text[:LONGEST] + "…")
        case keys.NUMBER:
            return _number(key)
        case keys.TIMESTAMP:
            _, seconds, nanos = struct.unpack(">BQI", key)
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
                seconds=seconds - (1 << 63), microseconds=nanos // 1000
            )
            return moment.isoformat()
        case keys.BOOLEAN:
            return "true" if key[1] == 2 else "false"
        case keys.NULL:
            return "null"
    kinds = {keys.BYTES: "bytes", keys.REFERENCE: "a reference", keys.GEO_POINT: "a geo point", keys.ARRAY: "an array"}
    return kinds.get(key[0], "a map")


def _number(key: bytes) -> str:
    if key[1] == 1:
        return "NaN"
    (bits,) = struct.unpack(">Q", key[2:10])
    plain = bits ^ (1 << 63) if bits & (1 << 63) else bits ^ 0xFFFFFFFFFFFFFFFF
    (double,) = struct.unpack(">d", struct.pack(">Q", plain))
    beyond = int.from_bytes(key[10:12], "big")
    return str(int(double) + beyond) if double == double // 1 and abs(double) < 2**64 else str(double)
