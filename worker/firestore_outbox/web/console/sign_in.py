"""The way in and out: email and password, Google, or one click on the dev stack."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from firestore_outbox.clock import Clock
from firestore_outbox.web.bodies import Bodies, NotRead
from firestore_outbox.web.console.forms import form_of
from firestore_outbox.web.console.identity import Identity, NotSignedIn, Redirected, SignedIn
from firestore_outbox.web.console.rendering import ZONE_COOKIE, Pages, zone_named
from firestore_outbox.web.console.security import (
    SESSION_COOKIE,
    SESSION_SECONDS,
    STATE_COOKIE,
    is_form_token,
    is_same_origin,
)

MOST_BYTES = 8 * 1024
STATE_SECONDS = 600
"""How long a person may take to sign in at Google."""


def is_own_path(to: str) -> bool:
    """Whether a redirect stays on this site. Browsers read a backslash as a slash."""
    return to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()


class SignIn:
    def __init__(self, identity: Identity, pages: Pages, bodies: Bodies, clock: Clock) -> None:
        self._identity = identity
        self._pages = pages
        self._bodies = bodies
        self._clock = clock

    def routes(self) -> list[Route]:
        return [
            Route("/sign-in", self._show),
            Route("/sign-in", self._with_password, methods=["POST"]),
            Route("/sign-in/google", self._to_google),
            Route("/sign-in/google/back", self._from_google),
            Route("/sign-out", self._out, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        return await self._page(request, None)

    async def _with_password(self, request: Request) -> Response:
        if not is_same_origin(request.headers):
            return PlainTextResponse("This form was not sent from a page of the console.", 403)
        async with self._bodies.read(request, MOST_BYTES) as body:
            if isinstance(body, NotRead):
                return PlainTextResponse(body.reason, body.status, {"Connection": "close"})
            form = form_of(body)
        result = await self._identity.with_password(form.get("email", "").strip(), form.get("password", ""))
        if isinstance(result, NotSignedIn):
            return await self._page(request, result.sentence, form)
        return self._in(result, form.get("to", "/"))

    async def _to_google(self, request: Request) -> Response:
        result = await self._identity.to_google(self._back_address(request))
        if not isinstance(result, Redirected):
            return await self._page(request, result.sentence)
        answer = RedirectResponse(result.url, 303)
        answer.set_cookie(STATE_COOKIE, result.session_id, max_age=STATE_SECONDS, **self._protected)
        return answer

    async def _from_google(self, request: Request) -> Response:
        session_id = request.cookies.get(STATE_COOKIE, "")
        address = f"{self._back_address(request)}?{request.url.query}"
        result = await self._identity.from_google(address, session_id) if session_id else NotSignedIn("Start again.")
        answer = (
            await self._page(request, result.sentence) if isinstance(result, NotSignedIn) else self._in(result, "/")
        )
        answer.delete_cookie(STATE_COOKIE)
        return answer

    async def _out(self, request: Request) -> Response:
        """From this browser; with `everywhere` from all devices."""
        cookie = request.cookies.get(SESSION_COOKIE, "")
        async with self._bodies.read(request, MOST_BYTES) as body:
            form = {} if isinstance(body, NotRead) else form_of(body)
        if not is_same_origin(request.headers) or not is_form_token(form.get("csrf", ""), cookie):
            return PlainTextResponse("This form is from another session. Load its page again.", 403)
        person = await self._identity.person(cookie) if cookie else None
        if form.get("everywhere") and person is not None and not await self._identity.revoke(person):
            return PlainTextResponse("The sign-in service does not answer. You are still signed in; try again.", 503)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(SESSION_COOKIE)
        return answer

    def _in(self, result: SignedIn, to: str) -> Response:
        answer = RedirectResponse(to if is_own_path(to) else "/", 303)
        answer.set_cookie(SESSION_COOKIE, result.cookie, max_age=SESSION_SECONDS, **self._protected)
        return answer

    @property
    def _protected(self) -> dict[str, Any]:
        """Without a stand-in the console is behind HTTPS."""
        return {"httponly": True, "samesite": "lax", "secure": not self._identity.emulator}

    def _back_address(self, request: Request) -> str:
        scheme = "http" if self._identity.emulator else "https"
        return f"{scheme}://{request.headers.get('host', '')}/sign-in/google/back"

    async def _page(self, request: Request, fault: str | None, form: dict[str, str] | None = None) -> Response:
        to = (form or {}).get("to") or request.query_params.get("to", "/")
        context = {
            "title": "Sign in",
            "fault": fault,
            "email": (form or {}).get("email", ""),
            "to": to if is_own_path(to) else "/",
            "people": await self._identity.people(),
            "zone": zone_named(request.cookies.get(ZONE_COOKIE)),
            "now": self._clock(),
        }
        return HTMLResponse(self._pages.page("sign_in.html", context), 200 if fault is None else 401)
