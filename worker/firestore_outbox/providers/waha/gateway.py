"""Where an account's session is: a WAHA that the user runs, its key, and the session's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.outcome import AuthFailed
from firestore_outbox.providers.servers import BASE_URL, base_url_of

API_KEY, SESSION = "apiKey", "session"
DEFAULT_SESSION = "default"
ACCOUNT_ID = "{accountId}"
"""In a session's name it stands for the account's id: one entry of credentials can then serve many accounts."""
_SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Where an account's session is, and the key to it. Never shown: it holds a secret."""

    base_url: str
    api_key: str
    session: str

    def __repr__(self) -> str:
        return f"Gateway(session={self.session!r})"

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Api-Key": self.api_key, "Content-Type": "application/json", "Accept": "application/json"}

    @property
    def session_url(self) -> str:
        return f"{self.base_url}/api/sessions/{self.session}"


def session_in(account_id: str, credentials: Credentials) -> str:
    """The name of the account's session."""
    return (credentials.get(SESSION) or DEFAULT_SESSION).replace(ACCOUNT_ID, account_id)


def gateway_of(account_id: str, credentials: Credentials) -> Gateway | AuthFailed:
    base_url = base_url_of(account_id, credentials)
    api_key = credentials.get(API_KEY)
    session = session_in(account_id, credentials)
    if not _is_address(base_url):
        return AuthFailed(detail=f"the account's {BASE_URL} must be an address such as https://waha.example.com")
    if not api_key:
        return AuthFailed(detail=f"the account has no {API_KEY}")
    if not _SESSION_NAME.fullmatch(session):
        return AuthFailed(detail=f"the account's {SESSION} must be 1 to 54 letters, digits, hyphens or underscores")
    return Gateway(base_url=base_url, api_key=api_key, session=session)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        return False
