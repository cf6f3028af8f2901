"""What protects a session: headers, cookies, and the check that a form was filled in on a page of ours.

A form carries a token that is made from the session cookie. Scripts of other sites cannot read the cookie, so they
cannot make the token; and no server-side secret has to be shared between instances.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256

SESSION_COOKIE = "__session"
"""The one name that Firebase Hosting passes on, for a console behind it."""
NOTICE_COOKIE = "console_notice"
STATE_COOKIE = "console_state"
SESSION_SECONDS = 14 * 86_400
"""The longest that Firebase makes session cookies for."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""On every answer."""


def form_token(session_cookie: str) -> str:
    return sha256(f"console form\n{session_cookie}".encode()).hexdigest()


def is_form_token(token: str, session_cookie: str) -> bool:
    return hmac.compare_digest(token.encode(), form_token(session_cookie).encode())


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a form comes from a page of this console: every browser says so with a POST."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin, host = headers.get("origin"), headers.get("host")
    return origin is not None and host is not None and origin.partition("://")[2] == host
