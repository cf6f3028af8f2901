"""Signed webhooks: `t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 over `<t>.<raw body>`.

The time is inside of the MAC, so a recorded request can be replayed for five minutes at most. Several `v1` may stand in
one header while a secret is being replaced; one that matches is enough.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

TOLERANCE = timedelta(seconds=300)
"""How old a signature may be; and how far ahead, since clocks differ in both directions."""

_MAX_HEADER = 1_000


def signed(raw_body: bytes, secret: str, at: datetime) -> str:
    moment = int(at.timestamp())
    return f"t={moment},v1={_mac(secret, moment, raw_body)}"


def is_genuine(header: str, raw_body: bytes, secret: str, now: datetime) -> bool:
    moment, candidates = _read(header)
    if moment is None or not secret or not _fresh(moment, now):
        return False
    expected = _mac(secret, moment, raw_body).encode()
    # Every candidate is compared, whatever the earlier ones gave: the time taken tells nothing.
    matches = [hmac.compare_digest(expected, candidate) for candidate in candidates]
    return any(matches)


def has_form(header: str, now: datetime) -> bool:
    """Whether it could be a signature of some body, made lately."""
    moment, candidates = _read(header)
    return moment is not None and bool(candidates) and _fresh(moment, now)


def _read(header: str) -> tuple[int | None, list[bytes]]:
    moment: int | None = None
    candidates: list[bytes] = []
    for item in header[:_MAX_HEADER].split(","):
        name, _, value = item.strip().partition("=")
        if name == "t" and value.isascii() and value.isdigit() and len(value) <= 12:
            moment = int(value)
        elif name == "v1":
            candidates.append(value.encode())
    return moment, candidates


def _fresh(moment: int, now: datetime) -> bool:
    signed_at = datetime.fromtimestamp(0, UTC) + timedelta(seconds=moment)
    return abs(now - signed_at) <= TOLERANCE


def _mac(secret: str, moment: int, raw_body: bytes) -> str:
    return hmac.new(secret.encode(), f"{moment}.".encode() + raw_body, hashlib.sha256).hexdigest()
