"""Files that the WAHA simulator fetched by their URL: what came, and how much of it.

`GET /_sim/waha/fetches` tells of all, oldest first: `{session, url, status, bytes, sha256}`; the URL without its query,
which may hold a signature.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

DEADLINE_SECONDS = 20.0
NO_ANSWER = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    session: str
    url: str
    status: int
    bytes: int
    sha256: str


class Fetched:
    def __init__(self) -> None:
        self._fetches: list[Fetch] = []

    async def fetch(self, session: str, url: str) -> str | None:
        """Why the file could not be had; None: it could."""
        digest, size, status = hashlib.sha256(), 0, NO_ANSWER
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_SECONDS) as client:  # noqa: SIM117
                async with client.stream("GET", url) as answer:
                    status = answer.status_code
                    async for piece in answer.aiter_bytes():
                        digest.update(piece)
                        size += len(piece)
        except (httpx.HTTPError, httpx.InvalidURL):
            status = NO_ANSWER
        shown = url.partition("?")[0]
        self._fetches.append(Fetch(session=session, url=shown, status=status, bytes=size, sha256=digest.hexdigest()))
        return None if status == 200 else f"the file could not be fetched ({status or 'no answer'})"

    async def shown(self, request: Request) -> Response:
        return JSONResponse([asdict(one) for one in self._fetches])
