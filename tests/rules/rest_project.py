"""A project of its own on one of the emulators, asked over REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from firestore_emulator.pytest_plugin import unsigned_token

JSON = {"content-type": "application/json"}
OWNER = {"authorization": "Bearer owner"}


def user(**claims: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {unsigned_token(claims)}"}


ALICE = user(sub="alice")


@dataclass
class Project:
    http: httpx.AsyncClient
    name: str

    @property
    def root(self) -> str:
        return f"projects/{self.name}/databases/(default)/documents"

    async def load(self, rules: str) -> httpx.Response:
        begin = "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
        source = begin + rules + "\n}}"
        body = {"rules": {"files": [{"name": "security.rules", "content": source}]}}
        return await self.http.put(f"/emulator/v1/projects/{self.name}:securityRules", json=body, headers=JSON)

    async def ask(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> int:
        answer = await self.http.request(method, f"/v1/{self.root}{path}", json=body, headers=JSON | headers)
        return answer.status_code

    async def put(self, *paths: str) -> None:
        for path in paths:
            assert await self.ask("PATCH", f"/{path}", OWNER, {}) == 200

    async def set(self, path: str, **fields: int) -> None:
        assert await self.ask("POST", ":commit", OWNER, {"writes": [self.write(path, **fields)]}) == 200

    def write(self, path: str, **fields: int) -> dict[str, Any]:
        values = {name: {"integerValue": str(value)} for name, value in fields.items()}
        return {"update": {"name": f"{self.root}/{path}", "fields": values}}
