"""A stand-in for Firebase Auth on the dev stack: the few calls of Identity Toolkit that the console, firebase-admin and
the web SDK make, and persons to sign in as. It is found by FIREBASE_AUTH_EMULATOR_HOST, which Cloud Run refuses.

    POST .../v1/accounts:signInWithPassword     email and password, and an ID token comes back
    POST .../v1/accounts:lookup                 the person of an ID token
    POST /securetoken.googleapis.com/v1/token   a new ID token for a refresh token
    POST .../v1/accounts:createAuthUri          as if to Google: the address leads to a page of this stand-in
    POST .../v1/accounts:signInWithIdp          and back from there
    POST .../v1/projects/{project}:createSessionCookie
    POST .../v1/projects/{project}/accounts:lookup, accounts:update, accounts
    GET  /people                                the persons, for sign-in with one click

Tokens and cookies are unsigned, as those of Google's emulator.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from firestore_emulator.stack import HOST
from firestore_outbox.local.announced import serve
from firestore_outbox.local.chat_page import AGENT, USER, VIEWER
from firestore_outbox.local.unsigned_tokens import TOKEN_SECONDS, unsigned_token

PREFIX = "/identitytoolkit.googleapis.com/v1"
PAGES = rf"http://({re.escape(HOST)}|localhost)(:\d+)?"
"""Origins whose pages may call it: those of this machine."""
PASSWORD = "local"
"""Of persons who exist on this machine alone."""
OPERATOR = "operator"


@dataclass(slots=True)
class User:
    uid: str
    email: str
    name: str
    note: str
    password: str = PASSWORD
    claims: dict[str, Any] = field(default_factory=dict)
    valid_since: int = 0
    """Tokens from before this second are revoked."""

    def lookup(self) -> dict[str, Any]:
        return {
            "localId": self.uid,
            "email": self.email,
            "displayName": self.name,
            "validSince": str(self.valid_since),
            "customAttributes": json.dumps(self.claims),
        }


def persons() -> list[User]:
    return [
        User(OPERATOR, "operator@example.com", "Olivia", "operator: every account", claims={"outboxOperator": True}),
        User(USER, "owner@example.com", "Otto", "owner of the demo accounts"),
        User(AGENT, "agent@example.com", "Agnes", "agent of the demo accounts"),
        User(VIEWER, "viewer@example.com", "Vera", "viewer of the demo accounts"),
        User("demo-stranger", "stranger@example.com", "Sam", "member of no account"),
    ]


class IdentityStandIn:
    def __init__(self, project: str) -> None:
        self._project = project
        self._users = {user.uid: user for user in persons()}

    def app(self) -> Starlette:
        project = f"{PREFIX}/projects/{{project}}"
        return Starlette(
            routes=[
                Route("/people", self._people),
                Route("/google", self._google),
                Route(f"{PREFIX}/accounts:signInWithPassword", self._password, methods=["POST"]),
                Route(f"{PREFIX}/accounts:lookup", self._own_lookup, methods=["POST"]),
                Route("/securetoken.googleapis.com/v1/token", self._renew, methods=["POST"]),
                Route(f"{PREFIX}/accounts:createAuthUri", self._auth_uri, methods=["POST"]),
                Route(f"{PREFIX}/accounts:signInWithIdp", self._idp, methods=["POST"]),
                Route(f"{project}:createSessionCookie", self._cookie, methods=["POST"]),
                Route(f"{project}/accounts:lookup", self._lookup, methods=["POST"]),
                Route(f"{project}/accounts:update", self._update, methods=["POST"]),
                Route(f"{project}/accounts", self._create, methods=["POST"]),
            ],
            middleware=[
                Middleware(CORSMiddleware, allow_origin_regex=PAGES, allow_methods=["POST", "GET"], allow_headers=["*"])
            ],
        )

    async def _people(self, request: Request) -> Response:
        shown = [
            {"email": user.email, "name": user.name, "note": user.note, "password": user.password}
            for user in self._users.values()
        ]
        return JSONResponse({"people": shown})

    async def _password(self, request: Request) -> Response:
        asked = await request.json()
        for user in self._users.values():
            if (user.email, user.password) == (asked.get("email"), asked.get("password")):
                return self._signed_in(user)
        return _refused("INVALID_LOGIN_CREDENTIALS")

    def _signed_in(self, user: User) -> Response:
        shown = {"localId": user.uid, "email": user.email, "displayName": user.name, "registered": True}
        return JSONResponse({**shown, "idToken": self._token(user), **_refresh(user)})

    def _token(self, user: User) -> str:
        return unsigned_token(user.uid, user.email, self._project, user.claims)

    async def _own_lookup(self, request: Request) -> Response:
        """What the web SDK asks about the person who has signed in."""
        user = self._user_of((await request.json()).get("idToken"))
        return JSONResponse({"users": [user.lookup()]}) if user else _refused("USER_NOT_FOUND")

    async def _renew(self, request: Request) -> Response:
        """The web SDK does it when an ID token is about to expire."""
        given = parse_qs((await request.body()).decode())
        user = self._user_of(given.get("refresh_token", [""])[0])
        if user is None:
            return _refused("INVALID_REFRESH_TOKEN")
        token = self._token(user)
        fresh = {"access_token": token, "id_token": token, "user_id": user.uid, "token_type": "Bearer"}
        return JSONResponse(
            {**fresh, "expires_in": str(TOKEN_SECONDS), "refresh_token": _refresh(user)["refreshToken"]}
        )

    def _user_of(self, token: object) -> User | None:
        try:
            claims = jwt.decode(str(token), options={"verify_signature": False})
        except jwt.InvalidTokenError:
            return None
        return self._users.get(str(claims.get("sub")))

    async def _auth_uri(self, request: Request) -> Response:
        back = (await request.json()).get("continueUri", "")
        host = request.headers.get("host", "")
        return JSONResponse({"authUri": f"http://{host}/google?{urlencode({'back': back})}", "sessionId": "local"})

    async def _google(self, request: Request) -> Response:
        """Google's page, on which the first person agrees at once."""
        back = request.query_params.get("back", "")
        is_local = urlsplit(back).hostname in (HOST, "localhost")
        return RedirectResponse(f"{back}?code={OPERATOR}", 303) if is_local else Response("no", 400)

    async def _idp(self, request: Request) -> Response:
        asked = await request.json()
        code = parse_qs(urlsplit(str(asked.get("requestUri"))).query).get("code", [""])[0]
        user = self._users.get(code) if asked.get("sessionId") == "local" else None
        if user is None:
            return _refused("INVALID_IDP_RESPONSE")
        return self._signed_in(user)

    async def _cookie(self, request: Request) -> Response:
        asked, project = await request.json(), request.path_params["project"]
        claims = jwt.decode(asked["idToken"], options={"verify_signature": False})
        now = int(time.time())
        cookie = {
            **claims,
            "iss": f"https://session.firebase.google.com/{project}",
            "aud": project,
            "iat": now,
            "exp": now + int(asked["validDuration"]),
            "jti": secrets.token_hex(16),
        }
        return JSONResponse({"sessionCookie": jwt.encode(cookie, "", algorithm="none")})

    async def _lookup(self, request: Request) -> Response:
        asked = await request.json()
        found = [
            user.lookup()
            for user in self._users.values()
            if user.uid in asked.get("localId", ()) or user.email in asked.get("email", ())
        ]
        return JSONResponse({"users": found} if found else {})

    async def _update(self, request: Request) -> Response:
        asked = await request.json()
        user = self._users.get(asked.get("localId", ""))
        if user is None:
            return _refused("USER_NOT_FOUND")
        if "customAttributes" in asked:
            user.claims = json.loads(asked["customAttributes"])
        if "validSince" in asked:
            user.valid_since = int(asked["validSince"])
        return JSONResponse({"localId": user.uid})

    async def _create(self, request: Request) -> Response:
        asked = await request.json()
        uid = asked.get("localId") or secrets.token_hex(14)
        if uid in self._users:
            return _refused("DUPLICATE_LOCAL_ID")
        email = asked.get("email") or f"{uid}@example.com"
        self._users[uid] = User(uid, email, uid, "made on this stack", asked.get("password") or PASSWORD)
        return JSONResponse({"localId": uid})


def _refresh(user: User) -> dict[str, str]:
    token = jwt.encode({"sub": user.uid, "use": "refresh"}, "", algorithm="none")
    return {"refreshToken": token, "expiresIn": str(TOKEN_SECONDS)}


def _refused(code: str) -> Response:
    return JSONResponse({"error": {"code": 400, "message": code}}, 400)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m firestore_outbox.local.identity", description="Sign-in.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--project", required=True)
    given = parser.parse_args()
    serve(IdentityStandIn(given.project).app(), given.port)


if __name__ == "__main__":
    main()
