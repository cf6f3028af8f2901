"""Files that a simulated person sends: put here by a test, and fetched in the way of each provider.

PUT /_sim/files/{mediaId}                               the content, with its Content-Type
GET /_sim/files                                         how often each was fetched
GET /v1/{accountId}/files/{mediaId}                     the simulator's own API
GET /waha/api/files/{session}/{mediaId}                 WAHA
GET /whatsapp_cloud/{version}/{mediaId}                 WhatsApp Cloud: names the address of the next
GET /whatsapp_cloud/{version}/files/{mediaId}
"""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route


class InboundFiles:
    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self._fetches: Counter[str] = Counter()

    def routes(self) -> list[Route]:
        return [
            Route("/_sim/files/{media_id}", self._put, methods=["PUT"]),
            Route("/_sim/files", self._shown),
            Route("/v1/{account_id}/files/{media_id}", self._get),
            Route("/waha/api/files/{session}/{media_id}", self._get),
            Route("/whatsapp_cloud/{version}/files/{media_id}", self._get),
        ]

    def has(self, media_id: str) -> bool:
        return media_id in self._files

    async def _put(self, request: Request) -> Response:
        mime_type = request.headers.get("content-type", "application/octet-stream")
        self._files[request.path_params["media_id"]] = await request.body(), mime_type
        return Response(status_code=204)

    async def _shown(self, request: Request) -> Response:
        return JSONResponse(dict(self._fetches))

    async def _get(self, request: Request) -> Response:
        media_id = request.path_params["media_id"]
        is_known = request.headers.get("authorization") or request.headers.get("x-api-key")
        if not is_known:
            return PlainTextResponse("a token or a key is needed", 401)
        if media_id not in self._files:
            return PlainTextResponse("no such file", 404)
        self._fetches[media_id] += 1
        content, mime_type = self._files[media_id]
        return Response(content, media_type=mime_type)
