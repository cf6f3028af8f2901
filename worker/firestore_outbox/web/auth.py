"""Who is calling.

The worker is called by Cloud Tasks and Cloud Scheduler, with an OIDC token of one service account for one audience.
Certificates are fetched once an hour, without blocking, and again when a token names a key we do not know. Never more
than once a minute, also when the fetch fails: a flood of bad tokens must not become a flood of fetches.

The HTTP API is called by people, with a Firebase ID token of this project, which firebase-admin verifies. It keeps
Google's certificates as long as Google says, and blocks while it fetches them, so it works in a thread. With
FIREBASE_AUTH_EMULATOR_HOST it believes unsigned tokens: good on a laptop, an open door anywhere else, and so refused
on Cloud Run.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import jwt

from firestore_outbox.clock import Clock
from firestore_outbox.errors import OutboxError
from firestore_outbox.settings import CLOUD_RUN_VARIABLE

GOOGLE_CERTS = "https://www.googleapis.com/oauth2/v3/certs"
GOOGLE_ISSUERS = ("https://accounts.google.com", "accounts.google.com")
FRESH = timedelta(hours=1)
RETRY = timedelta(minutes=1)
LEEWAY_SECONDS = 30
EMULATOR_VARIABLE = "FIREBASE_AUTH_EMULATOR_HOST"


LONGEST_TOKEN = 8_192
"""Google's and Firebase's have about 1,000 characters."""
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)


def bearer_in(authorization: str | None) -> str | None:
    """The token of an Authorization header, if it has the form of one: three parts, the last empty if it is unsigned.
    Looked at before anything is verified, fetched or read."""
    scheme, _, token = (authorization or "").partition(" ")
    is_token = scheme.lower() == "bearer" and len(token) <= LONGEST_TOKEN and _TOKEN.fullmatch(token)
    return token if is_token else None


@dataclass(frozen=True, slots=True)
class Allowed:
    email: str


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """No token, or none that we believe."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A genuine token of another caller, or for another audience."""

    reason: str


@dataclass(frozen=True, slots=True)
class User:
    """A person who has signed in to this project. What they may do is another question."""

    uid: str


@dataclass(frozen=True, slots=True)
class CannotTell:
    """Google's certificates are out of reach: the token may be good or bad. Trying again may help."""


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
        token = bearer_in(authorization)
        if token is None:
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


class UnsafeSettings(OutboxError):
    """The process must not serve like this."""


class UserCheck:
    """Firebase ID tokens of one project."""

    def __init__(self, project: str, environment: Mapping[str, str] = os.environ) -> None:
        if environment.get(EMULATOR_VARIABLE) and environment.get(CLOUD_RUN_VARIABLE):
            raise UnsafeSettings(f"{EMULATOR_VARIABLE} is set on Cloud Run: anybody's token would pass. Remove it.")
        # Imported here: it costs half a second, and only the HTTP API needs it.
        import firebase_admin
        import firebase_admin.auth
        from google.auth.credentials import AnonymousCredentials

        # Anonymous: certificates are public, and a check of a signature needs no rights.
        firebase = firebase_admin.App("outbox", AnonymousCredentials(), {"projectId": project, "httpTimeout": 5})
        self._client = firebase_admin.auth.Client(firebase)
        self._no_certificates: type[Exception] = firebase_admin.auth.CertificateFetchError
        self._expired: type[Exception] = firebase_admin.auth.ExpiredIdTokenError
        self._invalid: type[Exception] = firebase_admin.auth.InvalidIdTokenError

    async def check(self, authorization: str | None) -> User | Unauthenticated | CannotTell:
        token = bearer_in(authorization)
        if token is None:
            return Unauthenticated("a Firebase ID token is needed: Authorization: Bearer TOKEN")
        try:
            claims: Mapping[str, Any] = await asyncio.to_thread(
                self._client.verify_id_token, token, clock_skew_seconds=LEEWAY_SECONDS
            )
        except self._no_certificates:
            return CannotTell()
        except self._expired:
            return Unauthenticated("the Firebase ID token has expired; get a new one and try again")
        except (self._invalid, ValueError, TypeError, AttributeError):
            # The last two are what firebase-admin makes of a token whose claims are of no expected type. Its words
            # are not passed on: they quote the token.
            return Unauthenticated("this is no valid Firebase ID token of this project")
        return User(claims["uid"])
