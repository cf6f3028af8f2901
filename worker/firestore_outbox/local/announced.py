"""Serve one application of the stack on a port until SIGTERM, and print a line when it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import uvicorn
from starlette.types import ASGIApp

from firestore_emulator.stack import HOST


def serve(app: ASGIApp, port: int, *, before: Callable[[], Awaitable[None]] | None = None) -> None:
    """`before` runs on the server's event loop, before the port opens."""

    class Announcing(uvicorn.Server):
        async def startup(self, sockets=None) -> None:  # type: ignore[no-untyped-def]  # uvicorn's own signature
            if before is not None:
                await before()
            await super().startup(sockets)
            print(f"ready  http://{HOST}:{port}", flush=True)

    config = uvicorn.Config(app, host=HOST, port=port, log_level="warning", access_log=False, timeout_keep_alive=30)
    Announcing(config).run()
