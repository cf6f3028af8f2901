"""Who may call the worker: Cloud Tasks and Cloud Scheduler, by an OIDC token of one service account for one audience.

Certificates are fetched once an hour, without blocking, and again when a token names a key we do not know. Never more
than once a minute, also when the fetch fails: a flood of bad tokens must not become a flood of fetches.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import httpx
import jwt

from worker.clock import Clock

GOOGLE_CERTS = "https://www.googleapis.com/oauth2/v3/certs"
GOOGLE_ISSUERS = ("https://accounts.google.com", "accounts.google.com")
FRESH = timedelta(hours=1)
RETRY = timedelta(minutes=1)
LEEWAY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Allowed:
    email: str


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """No token, or none that we believe."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A genuine token of somebody else, or for somebody else."""

    reason: str


class CallerCheck:
    def __init__(self, *, audience: str, email: str, clock: Clock, certs_url: str = GOOGLE_CERTS) -> None:
        self._audience = audience
        self._email = email
        self._clock = clock
        self._certs_url = certs_url
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at: datetime | None = None
        """When the keys in hand were fetched."""
        self._asked_at: datetime | None = None
        """When they were last asked for, whatever came of it."""
        self._fetching = asyncio.Lock()

    async def check(self, authorization: str | None) -> Allowed | Unauthenticated | Forbidden:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return Unauthenticated("a bearer token is needed")
        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
        except jwt.InvalidTokenError:
            return Unauthenticated("the token is malformed")
        key = await self._key(str(key_id))
        if key is None:
            return Unauthenticated("the token is not signed by a known key")
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=["RS256"],
                options={"verify_aud": False, "require": ["exp", "iat", "iss", "aud"]},
                leeway=LEEWAY_SECONDS,
            )
        except jwt.InvalidTokenError as error:
            return Unauthenticated(f"the token is not valid: {error}")
        if claims["iss"] not in GOOGLE_ISSUERS:
            return Unauthenticated("the token has another issuer")
        if claims["aud"] != self._audience:
            return Forbidden("the token is for another audience")
        if claims.get("email") != self._email or claims.get("email_verified") is not True:
            return Forbidden("the token is of another account")
        return Allowed(self._email)

    async def _key(self, key_id: str) -> jwt.PyJWK | None:
        async with self._fetching:
            now = self._clock()
            is_fresh = self._fetched_at is not None and now - self._fetched_at <= FRESH
            may_ask = self._asked_at is None or now - self._asked_at > RETRY
            if may_ask and not (is_fresh and key_id in self._keys):
                self._asked_at = now
                await self._fetch(now)
            return self._keys.get(key_id)

    async def _fetch(self, now: datetime) -> None:
        try:
            async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
                answer = await client.get(self._certs_url)
                answer.raise_for_status()
                keys = jwt.PyJWKSet.from_dict(answer.json()).keys
        except (httpx.HTTPError, ValueError, jwt.PyJWTError):
            return  # the keys we have stay good; a call a minute from now tries again
        self._keys = {key.key_id: key for key in keys if key.key_id}
        self._fetched_at = now
