"""The whole stack with its console, and persons who are signed in: one for all cases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from google.cloud.firestore import AsyncClient

from firestore_outbox.accounts.members import member_fields, member_path
from firestore_outbox.local.dev import PROJECT, DevStack
from firestore_outbox.web.console.security import SESSION_COOKIE, form_token
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.conftest import SETTINGS

CONSOLE = replace(SETTINGS, console_port=0)
ROLES = ("owner", "agent", "viewer", "stranger", "operator")
EMAILS = {role: f"{role}@example.com" for role in ROLES}
UIDS = {"owner": "demo-user", "operator": "operator"} | {
    role: f"demo-{role}" for role in ("agent", "viewer", "stranger")
}


@dataclass
class Browser:
    """A person's session, without a browser."""

    http: httpx.AsyncClient

    @property
    def token(self) -> str:
        return form_token(self.http.cookies.get(SESSION_COOKIE) or "")

    async def get(self, path: str) -> httpx.Response:
        return await self.http.get(path)

    async def post(self, path: str, *, csrf: str | None = None, **fields: str) -> httpx.Response:
        data = {"csrf": self.token if csrf is None else csrf, "back": "/", **fields}
        return await self.http.post(path, data=data, headers={"origin": str(self.http.base_url).rstrip("/")})

    async def sign_in(self, role: str) -> Browser:
        answer = await self.post("/sign-in", email=EMAILS[role], password="local", to="/")
        assert answer.status_code == 303, answer.text
        return self


class World:
    def __init__(self, stack: DevStack, firestore: AsyncClient) -> None:
        assert stack.console_url is not None
        self.stack = stack
        self.url = stack.console_url
        self.firestore = firestore
        self._open: list[httpx.AsyncClient] = []

    def browser(self) -> Browser:
        http = httpx.AsyncClient(trust_env=False, base_url=self.url, timeout=PATIENCE_SECONDS)
        self._open.append(http)
        return Browser(http)

    async def person(self, role: str) -> Browser:
        return await self.browser().sign_in(role)

    async def account(self, account_id: str, *, members: bool = True, **fields: Any) -> str:
        """With the owner, the agent and the viewer as its members, or without."""
        document = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.firestore.document(f"accounts/{account_id}").set(document)
        for role in ("owner", "agent", "viewer") if members else ():
            path = member_path(account_id, UIDS[role])
            await self.firestore.document(path).set(member_fields(UIDS[role], role))
        return account_id

    async def read(self, path: str) -> dict[str, Any]:
        return (await self.firestore.document(path).get()).to_dict() or {}

    async def end(self) -> None:
        for http in self._open:
            await http.aclose()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world() -> AsyncIterator[World]:
    async with DevStack(CONSOLE) as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore)
            client = AsyncClient(project=PROJECT)
        made = World(stack, client)
        keeping = asyncio.create_task(stack.keep_running())  # a part that is killed comes again
        yield made
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await made.end()
