"""Who signs in: Firebase Auth, by email and password or with Google, and the session cookie that follows.

Passwords and Google's answer go from this server to Identity Toolkit, so that a page needs no script of Firebase's.
firebase-admin makes and verifies the cookies; with FIREBASE_AUTH_EMULATOR_HOST both talk to the stand-in of the dev
stack (local/identity.py), which is refused on Cloud Run.

A cookie is verified on each request. Whether it was revoked is asked once a minute for each cookie: a call to Google.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any

import httpx

from firestore_outbox.clock import Clock
from firestore_outbox.settings import CLOUD_RUN_VARIABLE
from firestore_outbox.web.auth import EMULATOR_VARIABLE, LEEWAY_SECONDS, UnsafeSettings
from firestore_outbox.web.console.rights import OPERATOR_CLAIM, Person
from firestore_outbox.web.console.security import SESSION_SECONDS

TOOLKIT = "identitytoolkit.googleapis.com"
REVOCATION_CHECK = timedelta(minutes=1)
MOST_REMEMBERED = 1_000
"""Cookies whose last check is remembered. The one that was checked longest ago is forgotten first."""
WRONG = "The email or the password is wrong."
UNREACHABLE = "The sign-in service does not answer at the moment. Try again."


@dataclass(frozen=True, slots=True)
class SignedIn:
    cookie: str


@dataclass(frozen=True, slots=True)
class NotSignedIn:
    sentence: str


@dataclass(frozen=True, slots=True)
class Redirected:
    """Where the browser signs in with Google, and what Identity Toolkit wants to hear again afterwards."""

    url: str
    session_id: str


@dataclass(frozen=True, slots=True)
class _Checked:
    at: datetime
    person: Person


class Identity:
    def __init__(self, project: str, api_key: str, clock: Clock, environment: Mapping[str, str] = os.environ) -> None:
        """`api_key` is the web API key of the Firebase project, which is public."""
        self.emulator = environment.get(EMULATOR_VARIABLE, "")
        """HOST:PORT of the stand-in; empty means Google's."""
        if self.emulator and environment.get(CLOUD_RUN_VARIABLE):
            raise UnsafeSettings(f"{EMULATOR_VARIABLE} is set on Cloud Run: any person could sign in. Remove it.")
        import firebase_admin
        import firebase_admin.auth
        from google.auth.credentials import AnonymousCredentials

        credentials = AnonymousCredentials() if self.emulator else None
        self._app = firebase_admin.initialize_app(
            credentials, {"projectId": project, "httpTimeout": 5}, name=f"outbox-console-{token_hex(8)}"
        )
        self._delete_app = firebase_admin.delete_app
        self._auth = firebase_admin.auth
        self._errors = firebase_admin.exceptions.FirebaseError
        base = f"http://{self.emulator}/{TOOLKIT}" if self.emulator else f"https://{TOOLKIT}"
        self._http = httpx.AsyncClient(
            base_url=f"{base}/v1", params={"key": api_key or "local"}, timeout=10, trust_env=not self.emulator
        )
        self._clock = clock
        self._checked: dict[str, _Checked] = {}

    async def close(self) -> None:
        await self._http.aclose()
        self._delete_app(self._app)

    async def people(self) -> list[dict[str, str]]:
        """For sign-in with one click: the persons of the stand-in, with their passwords. None on Google's."""
        if not self.emulator:
            return []
        try:
            answer = await self._http.get(f"http://{self.emulator}/people")
            return list(answer.raise_for_status().json()["people"])
        except (httpx.HTTPError, ValueError, KeyError):
            return []

    async def with_password(self, email: str, password: str) -> SignedIn | NotSignedIn:
        body = {"email": email, "password": password, "returnSecureToken": True}
        return await self._cookie_of(await self._ask("/accounts:signInWithPassword", body), WRONG)

    async def to_google(self, back: str) -> Redirected | NotSignedIn:
        """`back` is the address to which Google sends the browser afterwards."""
        answer = await self._ask("/accounts:createAuthUri", {"providerId": "google.com", "continueUri": back})
        if isinstance(answer, dict) and answer.get("authUri") and answer.get("sessionId"):
            return Redirected(str(answer["authUri"]), str(answer["sessionId"]))
        return NotSignedIn(UNREACHABLE if answer is None else "Sign-in with Google is not turned on for this project.")

    async def from_google(self, address: str, session_id: str) -> SignedIn | NotSignedIn:
        """`address` is the one that Google sent the browser to, with its query."""
        body = {"requestUri": address, "sessionId": session_id, "returnSecureToken": True}
        return await self._cookie_of(await self._ask("/accounts:signInWithIdp", body), "Google did not confirm it.")

    async def person(self, cookie: str) -> Person | None:
        """None: the cookie is not one of ours, has expired, or was revoked."""
        key, now = sha256(cookie.encode()).hexdigest(), self._clock()
        last = self._checked.get(key)
        asks = last is None or now - last.at > REVOCATION_CHECK
        verify: Callable[[], Mapping[str, Any]] = lambda: self._auth.verify_session_cookie(  # noqa: E731
            cookie, check_revoked=asks, app=self._app, clock_skew_seconds=LEEWAY_SECONDS
        )
        try:
            claims = await asyncio.to_thread(verify)
        except (self._errors, ValueError, TypeError, AttributeError):
            self._checked.pop(key, None)
            return None
        email = claims.get("email")
        person = Person(
            uid=str(claims["uid"]),
            email=email if isinstance(email, str) else None,
            is_operator=claims.get(OPERATOR_CLAIM) is True,
        )
        if asks:
            self._checked.pop(key, None)
            self._checked[key] = _Checked(now, person)
            if len(self._checked) > MOST_REMEMBERED:
                del self._checked[next(iter(self._checked))]
        return person

    async def revoke(self, person: Person) -> bool:
        """End all sessions of the person, on all devices. False: Google did not answer."""
        try:
            await asyncio.to_thread(self._auth.revoke_refresh_tokens, person.uid, self._app)
        except self._errors:
            return False
        self._checked = {key: one for key, one in self._checked.items() if one.person.uid != person.uid}
        return True

    async def set_operator(self, uid: str, *, is_operator: bool) -> bool:
        """It counts from the person's next sign-in on. False: there is no such user."""
        auth, app = self._auth, self._app

        def change() -> None:
            claims = dict(auth.get_user(uid, app).custom_claims or {})
            claims.pop(OPERATOR_CLAIM, None)
            auth.set_custom_user_claims(uid, {**claims, OPERATOR_CLAIM: True} if is_operator else claims, app)
            if not is_operator:
                auth.revoke_refresh_tokens(uid, app)

        try:
            await asyncio.to_thread(change)
        except auth.UserNotFoundError:
            return False
        return True

    async def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any] | int | None:
        """The answer; its status if it is a refusal; None: no answer."""
        try:
            answer = await self._http.post(path, json=body)
            if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                return None
            return dict(answer.json()) if answer.is_success else answer.status_code
        except (httpx.HTTPError, ValueError):
            return None

    async def _cookie_of(self, answer: dict[str, Any] | int | None, refusal: str) -> SignedIn | NotSignedIn:
        if answer is None:
            return NotSignedIn(UNREACHABLE)
        token = answer.get("idToken") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            return NotSignedIn(refusal)
        try:
            cookie = await asyncio.to_thread(
                self._auth.create_session_cookie, token, timedelta(seconds=SESSION_SECONDS), self._app
            )
        except (self._errors, ValueError):
            return NotSignedIn(UNREACHABLE)
        return SignedIn(cookie if isinstance(cookie, str) else cookie.decode())
