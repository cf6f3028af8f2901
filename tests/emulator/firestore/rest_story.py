"""HTTP requests told one after another to a Firestore, and its answers written so that two servers' are comparable.

Times, transactions and page tokens are each server's own, so they are written as what they are. A later request may use
the last one that was answered: `<transaction>`, `<token>`, `<time>`. Of an error its code and status count, not its
text. A 404 of Google's emulator has no JSON when it knows no such path, and counts as NOT_FOUND.

Two things are left out: `skippedResults`, which Google's emulator tells of some queries with an offset and not of
others, and the `done` of an aggregation, which the protocol does not have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

OWNER = {"authorization": "Bearer owner"}
"""Past the security rules of Google's emulator, which even with none keeps some calls to administrators."""
_TIMES = frozenset({"createTime", "updateTime", "readTime", "commitTime"})
_OWN_VALUES = {"transaction": "<transaction>", "nextPageToken": "<token>"}


@dataclass(frozen=True)
class Ask:
    verb: str
    path: str
    """Behind `.../documents`, with its query; or from the root, if it starts with `//`."""
    body: Any = None
    """Written as JSON; a string or bytes are sent as they are."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


class Teller:
    """One server, one project: remembers what later requests may need."""

    def __init__(self, client: httpx.AsyncClient, address: str, project: str) -> None:
        self._client = client
        self._address = address
        self._project = project
        self._root = f"projects/{project}/databases/(default)/documents"
        self._remembered: dict[str, str] = {}

    async def tell(self, story: list[Ask]) -> list[Answer]:
        return [await self.ask(one) for one in story]

    async def ask(self, one: Ask) -> Answer:
        response = await self.send(one)
        try:
            content = response.json()
        except ValueError:
            content = {"error": {"code": response.status_code, "status": "NOT_FOUND"}}
        self._remember(content)
        return Answer(response.status_code, self._comparable(content))

    async def send(self, one: Ask) -> httpx.Response:
        path = one.path[1:] if one.path.startswith("//") else f"/v1/{self._root}{one.path}"
        body = one.body if isinstance(one.body, str | bytes | None) else json.dumps(one.body)
        if isinstance(body, str):
            body = self._filled(body)
        headers = OWNER | ({} if body is None else {"content-type": "application/json"})
        url = f"http://{self._address}{self._filled(path, escape=True)}"
        return await self._client.request(one.verb, url, content=body, headers=headers)

    def _filled(self, text: str, *, escape: bool = False) -> str:
        for mark, said in self._remembered.items():
            text = text.replace(mark, quote(said, safe="") if escape else said)
        return text.replace("<root>", self._root).replace("<project>", self._project)

    def _remember(self, content: Any) -> None:
        match content:
            case dict():
                for key, value in content.items():
                    if key == "updateTime":
                        self._remembered["<time>"] = value
                    elif key in _OWN_VALUES:
                        self._remembered[_OWN_VALUES[key]] = value
                    self._remember(value)
            case list():
                for item in content:
                    self._remember(item)

    def _comparable(self, content: Any) -> Any:
        match content:
            case {"error": {"code": code, "status": status}}:
                return f"{code} {status}"
            case dict():
                left_out = {"skippedResults", "done"} if "result" in content else {"skippedResults"}
                return {
                    key: "a time" if key in _TIMES else _OWN_VALUES.get(key) or self._comparable(value)
                    for key, value in content.items()
                    if key not in left_out
                }
            case list():
                return [self._comparable(item) for item in content]
            case str():
                return content.replace(self._root, "<root>").replace(self._project, "<project>")
        return content
