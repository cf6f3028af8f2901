"""A directory's files over HTTP, in the place of Cloud Storage:

    PUT /files/uploads/{token}          a resumable upload, with Cloud Storage's Content-Range, 308 and Range
    GET /files/{accountId}/{mediaId}    a file, with a signature that ends

The functions hand out both addresses, after they have checked membership.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.directory_links import is_good
from firestore_outbox.media.directory_uploads import DirectoryUploads, Progress, Session
from firestore_outbox.media.storage import FileRef

PREFIX = "/files"
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)")
PERMANENT_REDIRECT = 308
"""What Cloud Storage answers while bytes are missing."""
SAFE_TO_SHOW = re.compile(r"(image/(jpeg|png|gif|webp)|video/[\w.+-]+|audio/[\w.+-]+)")


class FileServer:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._uploads = DirectoryUploads(directory)
        self._storage = DirectoryStorage(directory)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.received_bytes = 0

    def routes(self) -> list[Route]:
        return [
            Route(f"{PREFIX}/uploads/{{token}}", self._upload, methods=["PUT", "OPTIONS"]),
            Route(f"{PREFIX}/received", self._received),
            Route(f"{PREFIX}/{{account_id}}/{{media_id}}", self._file),
        ]

    async def _received(self, request: Request) -> Response:
        """How many bytes have come, of all uploads."""
        return PlainTextResponse(str(self.received_bytes))

    async def _upload(self, request: Request) -> Response:
        token = request.path_params["token"]
        session = self._uploads.find(token)
        if session is None:
            return PlainTextResponse("no such upload", 404)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_cors(session))
        wanted = _RANGE.fullmatch(request.headers.get("content-range", ""))
        if wanted is None or int(wanted[3]) != session.size_bytes:
            return PlainTextResponse("the Content-Range does not fit the upload", 400, headers=_cors(session))
        async with self._turns[token]:
            progress = self._uploads.progress(token, session)
            if wanted[1] is not None:
                progress = await self._take(request, token, session, int(wanted[1]), int(wanted[2]))
        return _answer(progress, session)

    async def _take(self, request: Request, token: str, session: Session, start: int, last: int) -> Progress:
        """Each piece is kept as it comes: a caller that is cut off goes on behind it."""
        at, progress = start, self._uploads.progress(token, session)
        async for piece in request.stream():
            self.received_bytes += len(piece)
            wanted = piece[: last + 1 - at]
            if wanted:
                progress = await asyncio.to_thread(self._uploads.append, token, session, at, wanted)
                at += len(wanted)
        return progress

    async def _file(self, request: Request) -> Response:
        names = request.path_params["account_id"], request.path_params["media_id"]
        until, signature = request.query_params.get("until", ""), request.query_params.get("signature", "")
        now = datetime.now(UTC)
        if not until.isdigit() or not is_good(self._directory, names, until=until, signature=signature, now=now):
            return PlainTextResponse("the address is not signed, or has ended", 403)
        ref = FileRef(*names)
        found = await self._storage.find(ref)
        if found is None:
            return PlainTextResponse("no such file", 404)
        path, mime_type = self._storage.where(ref), found.mime_type or "application/octet-stream"
        # What a stranger sent must not run as a page of this origin.
        guard = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
        if not SAFE_TO_SHOW.fullmatch(mime_type):
            guard["Content-Disposition"] = "attachment"
        return FileResponse(path, media_type=mime_type, headers={"Access-Control-Allow-Origin": "*", **guard})


def _answer(progress: Progress, session: Session) -> Response:
    if progress.is_complete:
        return Response(status_code=200, headers=_cors(session))
    so_far = {"Range": f"bytes=0-{progress.received_bytes - 1}"} if progress.received_bytes else {}
    return Response(status_code=PERMANENT_REDIRECT, headers={**so_far, **_cors(session)})


def _cors(session: Session) -> dict[str, str]:
    if session.origin is None:
        return {}
    return {
        "Access-Control-Allow-Origin": session.origin,
        "Access-Control-Allow-Methods": "PUT",
        "Access-Control-Allow-Headers": "Content-Range, Content-Type",
        "Access-Control-Expose-Headers": "Range",
        "Vary": "Origin",
    }
