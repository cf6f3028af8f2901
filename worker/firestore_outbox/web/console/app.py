"""The console as an ASGI application: every request passes the session, every action the form's token and the right.

An account, a message or a run that a person may not see is answered like one that does not exist.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firestore_outbox import log
from firestore_outbox.errors import OutboxError
from firestore_outbox.web.bodies import Bodies, NotRead
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Shown, Subject
from firestore_outbox.web.console.forms import form_of
from firestore_outbox.web.console.pages import DEEDS, DOWNLOADS, SCREENS
from firestore_outbox.web.console.rendering import STATIC, ZONE_COOKIE, Pages, zone_named
from firestore_outbox.web.console.rights import Person, Right, allows, needed
from firestore_outbox.web.console.screens import Console, Screen, Viewer
from firestore_outbox.web.console.security import (
    HEADERS,
    NOTICE_COOKIE,
    SESSION_COOKIE,
    form_token,
    is_form_token,
    is_same_origin,
)
from firestore_outbox.web.console.sign_in import SignIn, is_own_path

LONGEST_OUTCOME = 500
"""Characters of a sentence that the log of actions keeps."""
RECHECK = timedelta(minutes=1)
"""After this time a live page's session and memberships are looked at again."""
HEARTBEAT_SECONDS = 15.0
"""Between two signs of life on a live page: proxies close connections that are silent."""
RETRY_MS = 1_500
"""After which a page that lost its connection tries again."""

Endpoint = Callable[[Request], Awaitable[Response]]


class NotSignedIn(Exception):
    """There is no session, or not any more."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a person who has signed in."""

    viewer: Viewer
    cookie: str
    notice: tuple[bool, str] | None

    @property
    def person(self) -> Person:
        return self.viewer.person


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds a page that answers a form."""

    title: str
    section: str
    options: tuple[str, ...] = ()
    is_live: bool = False


def app(console: Console) -> ASGIApp:
    return _Headers(routed(console))


def routed(console: Console) -> Starlette:
    """Every address of the console."""
    pages, bodies = Pages(), Bodies(most_bytes=32_000_000, seconds=10)
    door = SignIn(console.identity, pages, bodies, console.system.clock)
    shell = Shell(console, pages, bodies)

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    return Starlette(
        routes=[
            Route("/healthz", health),
            Mount("/static", StaticFiles(directory=STATIC)),
            *door.routes(),
            *(Route(f"/live{screen.path}", shell.live(screen)) for screen in SCREENS if screen.is_live),
            *(Route(download.path, shell.download(download.load)) for download in DOWNLOADS),
            *(Route(screen.path, shell.page(screen)) for screen in SCREENS),
            *(Route(deed.path, shell.deed(deed), methods=["POST"]) for deed in DEEDS),
        ],
        exception_handlers={NotSignedIn: _to_sign_in, OutboxError: shell.sorry, 404: shell.not_found},
    )


class _Headers:
    """The security headers on every answer. Pages with a person's data are not stored anywhere."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message["headers"])
                cache = "public, max-age=3600" if scope["path"].startswith("/static/") else "no-store"
                given += [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                given.append((b"cache-control", cache.encode()))
                message = {**message, "headers": given}
            await send(message)

        await self._inner(scope, receive, with_headers)


async def _to_sign_in(request: Request, error: Exception) -> Response:
    if request.url.path.startswith("/live/"):
        return PlainTextResponse("the session has ended", 401)
    if request.method != "GET":
        return PlainTextResponse("You are not signed in. Sign in, and try again.", 401)
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/sign-in?to={quote(back)}", 303)


class Shell:
    """What pages and actions have in common."""

    def __init__(self, console: Console, pages: Pages, bodies: Bodies) -> None:
        self._console = console
        self._pages = pages
        self._bodies = bodies

    # --- pages

    def page(self, screen: Screen) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visit = await self._visit(request)
            params = _params(screen, request)
            if screen.operators_only and not visit.person.is_operator:
                return await self.not_found(request, None)
            read = await self._console.views.once(
                screen.key(visit.viewer, params),
                lambda: screen.load(self._console, visit.viewer, params),
                screen.every if screen.is_live else timedelta(0),
            )
            if read.data is None:
                return await self.not_found(request, None)
            answer = HTMLResponse(self._pages.page(screen.template, self._context(request, visit, screen, read.data)))
            answer.delete_cookie(NOTICE_COOKIE)
            return answer

        return endpoint

    def live(self, screen: Screen) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visit = await self._visit(request)
            if screen.operators_only and not visit.person.is_operator:
                return await self.not_found(request, None)
            headers = {"X-Accel-Buffering": "no"}
            return StreamingResponse(
                self._events(request, visit, screen), media_type="text/event-stream", headers=headers
            )

        return endpoint

    async def _events(self, request: Request, visit: Visit, screen: Screen) -> AsyncIterator[str]:
        """The live part of the page each time that it changed; empty comments in between. Ends after a while: the
        browser comes again by itself, and is then checked again."""
        params = _params(screen, request)
        reads = self._console.views.follow(
            screen.key(visit.viewer, params),
            lambda: screen.load(self._console, visit.viewer, params),
            screen.every,
        )
        yield f"retry: {RETRY_MS}\n\n"
        shown, ends = "", self._console.system.clock() + RECHECK
        coming = asyncio.ensure_future(anext(reads))
        try:
            while self._console.system.clock() < ends:
                done, _ = await asyncio.wait([coming], timeout=HEARTBEAT_SECONDS)
                if not done:
                    yield ": still here\n\n"
                    continue
                read = coming.result()
                if read.data is None:
                    return
                part = self._pages.live(screen.template, self._context(request, visit, screen, read.data))
                if part != shown:
                    shown = part
                    yield f"event: changed\ndata: {json.dumps(part)}\n\n"
                coming = asyncio.ensure_future(anext(reads))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await reads.aclose()

    def download(self, load: Callable[..., Awaitable[Response | None]]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visit = await self._visit(request)
            found = await load(self._console, visit.viewer, {**request.query_params, **request.path_params})
            return found or await self.not_found(request, None)

        return endpoint

    # --- actions

    def deed(self, deed: Deed) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            if not is_same_origin(request.headers):
                return PlainTextResponse("This form was not sent from a page of the console.", 403)
            person, cookie = await self._person(request)
            async with self._bodies.read(request, deed.most_bytes) as body:
                if isinstance(body, NotRead):
                    return PlainTextResponse(body.reason, body.status, {"Connection": "close"})
                form = form_of(body, request.headers.get("content-type", ""))
                if not is_form_token(form.get("csrf", ""), cookie):
                    return PlainTextResponse("This form is from another session. Load its page again.", 403)
                return await self._done(request, deed, person, form)

        return endpoint

    async def _done(self, request: Request, deed: Deed, person: Person, form: Form) -> Response:
        subject = await deed.find(self._console, person, str(request.path_params.get("id", "")))
        if subject is None:
            return await self.not_found(request, None)
        role = await self._role(person, subject)
        if not allows(person, role, Right.LOOK if subject.account_id is not None else Right.OPERATE):
            return await self.not_found(request, None)
        if not allows(person, role, subject.right):
            return PlainTextResponse(f"To {subject.right}, you have to be {needed(subject.right)}.", 403)
        outcome = await deed.do(self._console, person, subject, form)
        if isinstance(outcome, Shown):
            return await self._shown(request, outcome)
        if not (deed.notes_itself and outcome.is_done):
            detail = {"subject": subject.id, "outcome": outcome.sentence[:LONGEST_OUTCOME], "via": "console"}
            note = self._console.system.administration.note
            await note(subject.account_id, deed.action, by=person.uid, detail=detail)
        log.console_action(subject.account_id, deed.action, is_done=outcome.is_done)
        self._console.views.forget()
        return self._back(outcome, form)

    async def _shown(self, request: Request, shown: Shown) -> Response:
        visit = await self._visit(request)
        frame = Frame(title=shown.title, section=shown.section)
        return HTMLResponse(self._pages.page(shown.template, self._context(request, visit, frame, shown.data)))

    async def _role(self, person: Person, subject: Subject) -> object:
        """Read for this action: a membership that was taken away does not count any more."""
        if person.is_operator or subject.account_id is None:
            return None
        return await self._console.system.members.role(subject.account_id, person.uid)

    def _back(self, outcome: Outcome, form: Form) -> Response:
        to = outcome.to or form.get("back", "/")
        answer = RedirectResponse(to if is_own_path(to) else "/", 303)
        told = urlsafe_b64encode(json.dumps([outcome.is_done, outcome.sentence]).encode()).decode()
        answer.set_cookie(NOTICE_COOKIE, told, max_age=60, httponly=True, samesite="lax")
        return answer

    # --- who

    async def _person(self, request: Request) -> tuple[Person, str]:
        cookie = request.cookies.get(SESSION_COOKIE, "")
        person = await self._console.identity.person(cookie) if cookie else None
        if person is None:
            raise NotSignedIn
        return person, cookie

    async def _visit(self, request: Request) -> Visit:
        person, cookie = await self._person(request)
        members = [] if person.is_operator else await self._console.system.members.accounts_of(person.uid)
        viewer = Viewer(person=person, roles={one.account_id: one.role for one in members})
        return Visit(viewer, cookie, _notice(request.cookies.get(NOTICE_COOKIE)))

    # --- answers

    def _context(
        self, request: Request, visit: Visit, screen: Screen | Frame, data: Mapping[str, Any]
    ) -> dict[str, Any]:
        query = {name: value for name, value in request.query_params.items() if name in screen.options}
        path = request.url.path.removeprefix("/live") or "/"
        return {
            **data,
            "viewer": visit.viewer,
            "person": visit.person,
            "Right": Right,
            "csrf": form_token(visit.cookie),
            "zone": zone_named(request.cookies.get(ZONE_COOKIE)),
            "now": self._console.system.clock(),
            "title": data.get("title", screen.title),
            "section": screen.section,
            "notice": visit.notice,
            "here": path + (f"?{urlencode(query)}" if query else ""),
            "query": query,
            "live_path": f"/live{path}" + (f"?{urlencode(query)}" if query else "") if screen.is_live else None,
            "has_simulator": self._console.simulator is not None,
            "project": self._console.system.settings.project,
        }

    async def not_found(self, request: Request, error: Exception | None) -> Response:
        return self._plain(request, "Not here", "There is no such thing, or you are not a member of its account.", 404)

    async def sorry(self, request: Request, error: Exception) -> Response:
        return self._plain(request, "Not now", f"It did not work: {error} Try again in a moment.", 503)

    def _plain(self, request: Request, title: str, sentence: str, status: int) -> Response:
        zone = zone_named(request.cookies.get(ZONE_COOKIE))
        context = {"title": title, "sentence": sentence, "zone": zone, "now": self._console.system.clock()}
        return HTMLResponse(self._pages.page("plain.html", context), status)


def _params(screen: Screen, request: Request) -> dict[str, str]:
    query = {name: value for name, value in request.query_params.items() if name in screen.options and value}
    return {**query, **{name: str(value) for name, value in request.path_params.items()}}


def _notice(cookie: str | None) -> tuple[bool, str] | None:
    try:
        is_done, sentence = json.loads(urlsafe_b64decode(cookie or ""))
        return bool(is_done), str(sentence)
    except (ValueError, TypeError):
        return None
