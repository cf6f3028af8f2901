"""The gateway of an account, where the user runs gateways of their own: one address, or one of several.

Several addresses share the accounts by rendezvous hashing: each account stays at its gateway while the list stays as it
is, and a new address takes its part of the accounts, evenly, from all others. The accounts that move are linked again.
"""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from firestore_outbox.providers.credentials import Credentials

BASE_URL = "baseUrl"


def base_url_of(account_id: str, credentials: Credentials) -> str:
    """The address of the account's gateway, without a slash at its end; empty if the account names none."""
    addresses = [one.rstrip("/") for one in (credentials.get(BASE_URL) or "").replace(",", " ").split()]
    return max(addresses, key=lambda address: _weight(address, account_id), default="")


def server_of(account_id: str, credentials: Credentials) -> str:
    """HOST:PORT of the account's gateway, or HOST without a port; empty if the account names none."""
    try:
        return urlsplit(base_url_of(account_id, credentials)).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def _weight(address: str, account_id: str) -> bytes:
    return hashlib.sha256(f"{address} {account_id}".encode()).digest()
