"""The chat page of client/demo on a port of this machine, with all that it needs and no network:

    /demo/                     the page
    /outbox.js and others      the client that it imports
    /sdk/...                   the Firebase SDK, as npm installed it
    /config.json               where Firestore is, and as whom
    /token                     an ID token of the page's user, for the functions
    /qr.svg?text=...           a QR code
    /stack.json                which parts of the stack do not answer
    /phone/...                 the recipients' phones, which the provider simulator plays

There is no sign-in here: the page is the stack's own user. page_site.py is the same page for a project, with sign-in.

It makes the accounts that the page offers, unless they are there, with the page's user as their owner.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import segno
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from firestore_outbox.accounts.members import member_fields, member_path
from firestore_outbox.local.announced import serve
from firestore_outbox.local.page_site import SDK_FILES, page_html, sdk
from firestore_outbox.local.product import CLIENT
from firestore_outbox.local.unsigned_tokens import unsigned_token
from firestore_outbox.settings import Settings

LONGEST_CODE = 1_000
"""Characters of a text that becomes a QR code."""
ANSWER_SECONDS = 5.0
"""A part of the stack that takes longer is down, as far as the page is concerned."""
USER = "demo-user"
AGENT, VIEWER = "demo-agent", "demo-viewer"
"""Further members of the page's accounts, for the console."""
ACCOUNTS = {"shop": "Flower shop", "clinic": "Dental clinic"}
CONTACTS = {"+4915550000001": "Ada", "+4915550000002": "Grace", "+4915550000003": "Mary"}


class _Reply(BaseModel):
    """What a contact answers."""

    model_config = ConfigDict(strict=True, extra="forbid")
    accountId: str
    sender: str = Field(alias="from")
    text: str


class _Number(BaseModel):
    """Whether a contact's number exists."""

    model_config = ConfigDict(strict=True, extra="forbid")
    to: str
    exists: bool


class ChatPage:
    def __init__(
        self,
        *,
        project: str,
        firestore: str,
        provider: str,
        functions: str | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        """`functions` is where files are uploaded; None: there are none. `others` are further parts of the stack, which
        the page says are down if they are: name -> URL."""
        self._functions = functions
        self._settings = Settings.from_environment(os.environ)
        self._project = project
        self._parts = {"Firestore": f"http://{firestore}", "the simulated provider": f"{provider}/_sim/health"}
        self._parts |= others or {}
        self._firestore = firestore
        self._http = httpx.AsyncClient(trust_env=False, timeout=30)
        self._provider = provider

    async def make_accounts(self) -> None:
        for account_id in ACCOUNTS:
            pace = {"mapValue": {"fields": {"perMinute": {"integerValue": "40"}}}}
            fields = {"provider": {"stringValue": "simulated"}, "status": {"stringValue": "active"}, "pace": pace}
            await self._create(f"accounts/{account_id}", fields)
            for uid, role in ((USER, "owner"), (AGENT, "agent"), (VIEWER, "viewer")):
                member = {name: {"stringValue": value} for name, value in member_fields(uid, role).items()}
                await self._create(member_path(account_id, uid), member)

    async def _create(self, path: str, fields: dict[str, Any]) -> None:
        documents = f"projects/{self._project}/databases/(default)/documents"
        write = {"update": {"name": f"{documents}/{path}", "fields": fields}, "currentDocument": {"exists": False}}
        answer = await self._http.post(
            f"http://{self._firestore}/v1/{documents}:commit",
            json={"writes": [write]},
            headers={"Authorization": "Bearer owner"},
        )
        if answer.status_code != httpx.codes.CONFLICT:  # it was there
            answer.raise_for_status()

    def app(self) -> Starlette:
        installed = sdk()
        return Starlette(
            routes=[
                Route("/", lambda request: RedirectResponse("/demo/")),
                Route("/config.json", self._config),
                Route("/token", self._token),
                Route("/qr.svg", _code),
                Route("/stack.json", self._stack),
                Route("/phone/replies", self._reply, methods=["POST"]),
                Route("/phone/numbers", self._number),
                Route("/phone/numbers", self._set_number, methods=["PUT"]),
                *(Route(f"/{file.name}", _file(file)) for file in CLIENT.glob("*.js")),
                *(Route(f"/sdk/{name}", _file(installed / name)) for name in SDK_FILES if installed),
                *(Route(path, _page(installed)) for path in ("/demo/", "/demo/index.html")),
                Mount("/demo", _Fresh(directory=CLIENT / "demo", html=True)),
            ],
            exception_handlers={httpx.HTTPError: _no_provider},
        )

    async def _config(self, request: Request) -> Response:
        host, _, port = self._firestore.rpartition(":")
        return JSONResponse(
            {
                "firebase": {"projectId": self._project},
                "firestore": {"host": host, "port": int(port)},
                "uid": USER,
                "accounts": [{"id": account_id, "name": name} for account_id, name in ACCOUNTS.items()],
                "contacts": [{"to": to, "name": name} for to, name in CONTACTS.items()],
                "hasSimulator": True,
                "files": None if self._functions is None else self._files,
            }
        )

    @property
    def _files(self) -> dict[str, Any]:
        max_bytes = round(self._settings.media_max_mb * 1_000_000)
        return {"url": self._functions, "maxBytes": max_bytes, "types": self._settings.taken_types}

    async def _token(self, request: Request) -> Response:
        token = unsigned_token(USER, f"{USER}@example.com", self._project)
        return PlainTextResponse(token, headers={"cache-control": "no-store"})

    async def _stack(self, request: Request) -> Response:
        answers = await asyncio.gather(*(self._answers(url) for url in self._parts.values()))
        down = [name for name, answered in zip(self._parts, answers, strict=True) if not answered]
        return JSONResponse({"down": down}, headers={"cache-control": "no-store"})

    async def _answers(self, url: str) -> bool:
        try:
            return (await self._http.get(url, timeout=ANSWER_SECONDS)).is_success
        except httpx.HTTPError:
            return False

    # The other end

    async def _reply(self, request: Request) -> Response:
        try:
            reply = _Reply.model_validate_json(await request.body())
        except ValidationError as error:
            return PlainTextResponse(str(error), 400)
        return await self._ask("POST", "/_sim/inbound", reply.model_dump(by_alias=True))

    async def _number(self, request: Request) -> Response:
        faults = await self._faults()
        return JSONResponse({"exists": request.query_params.get("to") not in faults["invalidRecipients"]})

    async def _set_number(self, request: Request) -> Response:
        try:
            number = _Number.model_validate_json(await request.body())
        except ValidationError as error:
            return PlainTextResponse(str(error), 400)
        faults = await self._faults()
        others = [to for to in faults["invalidRecipients"] if to != number.to]
        unknown = others if number.exists else [*others, number.to]
        return await self._ask("PUT", "/_sim/faults", {**faults, "invalidRecipients": unknown})

    async def _faults(self) -> dict[str, Any]:
        answer = await self._http.get(f"{self._provider}/_sim/faults")
        faults: dict[str, Any] = answer.raise_for_status().json()
        return faults

    async def _ask(self, method: str, path: str, body: Any) -> Response:
        answer = await self._http.request(method, f"{self._provider}{path}", json=body)
        return PlainTextResponse(answer.text, answer.status_code)


async def _no_provider(request: Request, error: Exception) -> Response:
    return PlainTextResponse("the provider simulator does not answer", 503)


async def _code(request: Request) -> Response:
    text = request.query_params.get("text", "")[:LONGEST_CODE]
    drawn = io.BytesIO()
    segno.make(text or "-", error="l", micro=False).save(drawn, kind="svg", scale=4, light="#fff")
    return Response(drawn.getvalue(), media_type="image/svg+xml", headers={"cache-control": "no-store"})


class _Fresh(StaticFiles):
    """Asked for each time: who edits the page wants to see it."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def _page(installed: Path | None) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return HTMLResponse(page_html(installed), headers={"cache-control": "no-cache"})

    return answer


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return FileResponse(path, media_type="text/javascript", headers={"cache-control": "no-cache"})

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m firestore_outbox.local.chat_page", description="The chat page.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--firestore", required=True, metavar="HOST:PORT", help="the Firestore emulator")
    parser.add_argument("--provider", required=True, metavar="URL", help="the provider simulator")
    parser.add_argument("--functions", metavar="URL", help="the functions")
    parser.add_argument("--worker", metavar="URL", help="the worker")
    given = parser.parse_args()
    urls = {"the functions": given.functions, "the worker": given.worker}
    others = {name: f"{url}/healthz" for name, url in urls.items() if url is not None}
    page = ChatPage(
        project=given.project,
        firestore=given.firestore,
        provider=given.provider,
        functions=given.functions,
        others=others,
    )
    serve(page.app(), given.port, before=page.make_accounts)


if __name__ == "__main__":
    main()
