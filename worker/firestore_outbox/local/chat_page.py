"""The chat page of client/demo on a port of this machine, with all that it needs and no network:

    /demo/                     the page
    /outbox.js and others      the client that it imports
    /sdk/...                   the Firebase SDK, as npm installed it
    /config.json               where Firestore is, and as whom
    /stack.json                which parts of the stack do not answer
    /phone/...                 the recipients' phones, which the provider simulator plays

It makes the accounts that the page offers, unless they are there, with the page's user as their owner.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from firestore_emulator.stack import HOST
from firestore_outbox.local.product import CLIENT

CLIENT_FILES = ("outbox.js", "message.js", "watch.js")
SDK_FILES = ("firebase-app.js", "firebase-firestore.js")

ANSWER_SECONDS = 5.0
"""A part of the stack that takes longer is down, as far as the page is concerned."""
USER = "demo-user"
ACCOUNTS = {"shop": "Flower shop", "clinic": "Dental clinic"}
CONTACTS = {"+4915550000001": "Ada", "+4915550000002": "Grace", "+4915550000003": "Mary"}


def sdk() -> Path | None:
    """The Firebase SDK as npm installed it: here, in a folder above, or in the checkout. None if there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents, CLIENT.resolve().parent):
        found = folder / "node_modules" / "firebase"
        if all((found / name).is_file() for name in SDK_FILES):
            return found
    return None


def missing() -> str | None:
    """What this machine lacks for the page, and how to get it; None if it can be served."""
    if sdk() is not None:
        return None
    return "the chat page needs the Firebase SDK in node_modules: run npm install firebase (in a checkout: npm ci)"


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
    def __init__(self, *, project: str, firestore: str, provider: str, others: Mapping[str, str] | None = None) -> None:
        """`others` are further parts of the stack, which the page says are down if they are: name -> URL."""
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
            await self._create(f"accounts/{account_id}/members/{USER}", {"role": {"stringValue": "owner"}})

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
                Route("/stack.json", self._stack),
                Route("/phone/replies", self._reply, methods=["POST"]),
                Route("/phone/numbers", self._number),
                Route("/phone/numbers", self._set_number, methods=["PUT"]),
                *(Route(f"/{name}", _file(CLIENT / name)) for name in CLIENT_FILES),
                *(Route(f"/sdk/{name}", _file(installed / name)) for name in SDK_FILES if installed),
                Mount("/demo", _Fresh(directory=CLIENT / "demo", html=True)),
            ],
            exception_handlers={httpx.HTTPError: _no_provider},
        )

    async def _config(self, request: Request) -> Response:
        host, _, port = self._firestore.rpartition(":")
        return JSONResponse(
            {
                "projectId": self._project,
                "firestore": {"host": host, "port": int(port)},
                "uid": USER,
                "accounts": [{"id": account_id, "name": name} for account_id, name in ACCOUNTS.items()],
                "contacts": [{"to": to, "name": name} for to, name in CONTACTS.items()],
                "hasSimulator": True,
            }
        )

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


class _Fresh(StaticFiles):
    """Asked for each time: who edits the page wants to see it."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


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
    page = ChatPage(project=given.project, firestore=given.firestore, provider=given.provider, others=others)

    class Announcing(uvicorn.Server):
        async def startup(self, sockets=None) -> None:  # type: ignore[no-untyped-def]  # uvicorn's own signature
            await page.make_accounts()
            await super().startup(sockets)
            print(f"ready  http://{HOST}:{given.port}", flush=True)

    config = uvicorn.Config(page.app(), host=HOST, port=given.port, log_level="warning", access_log=False)
    Announcing(config).run()


if __name__ == "__main__":
    main()
