"""Files from memory on a port of this machine, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from firestore_emulator.stack import HOST
from firestore_outbox.web.serve import bound, on_signals, served

TYPES = {"js": "text/javascript", "html": "text/html; charset=utf-8", "json": "application/json"}
"""Modules need theirs, whatever this machine's own table says."""


def files_app(files: Mapping[str, bytes]) -> Starlette:
    """`files` are by their path. A path that ends in a slash is its index.html."""

    async def answer(request: Request) -> Response:
        path = request.path_params["path"]
        name = f"{path}index.html" if path == "" or path.endswith("/") else path
        content = files.get(name)
        if content is None:
            return Response("there is no such file", 404)
        kind = TYPES.get(name.rpartition(".")[2]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return Starlette(routes=[Route("/{path:path}", answer)])


async def serve_files(files: Mapping[str, bytes], port: int, ready: Callable[[int], None]) -> None:
    """`ready` is called with the port once it answers."""
    listening, stop = bound(HOST, port), asyncio.Event()
    async with served(files_app(files), listening):
        on_signals(stop)
        ready(listening.getsockname()[1])
        await stop.wait()
