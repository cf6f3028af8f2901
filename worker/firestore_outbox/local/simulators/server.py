"""The simulator on a port of this machine. Its connections can be cut in place of an answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from firestore_outbox.local.simulators.app import CUT_EXTENSION

_KEEP_ALIVE_SECONDS = 60
"""Longer than clients keep an idle connection: none of them shall meet one that is being closed."""
_GRACE_SECONDS = 2


class _Cuttable(H11Protocol):
    """Offers its connection's end to the application, as an extension of the ASGI scope."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        app: Any = self.app

        async def cut() -> None:
            self.transport.abort()

        async def cuttable(scope: Any, receive: Any, send: Any) -> None:
            scope.setdefault("extensions", {})[CUT_EXTENSION] = cut
            await app(scope, receive, send)

        self.app = cuttable


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process has one owner of its signals, and this is not it."""
        yield


class Listener:
    """`await Listener.start(app, port)`; port 0 takes a free one. A taken port is an OSError."""

    def __init__(self, server: _Server, bound: socket.socket) -> None:
        host, port = bound.getsockname()[:2]
        self.address = f"{host}:{port}"
        self._server = server
        self._serving = asyncio.create_task(server.serve(sockets=[bound]))

    @classmethod
    async def start(cls, app: Any, *, host: str, port: int) -> Listener:
        # The protocol is named because asyncio switches Nagle off only where it is: without it, 40 ms an answer.
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, port))
        except BaseException:
            bound.close()
            raise
        config = uvicorn.Config(
            app,
            http=_Cuttable,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        listener = cls(_Server(config), bound)
        await listener._server.ready.wait()
        return listener

    async def stop(self) -> None:
        self._server.should_exit = True
        await asyncio.gather(self._serving, return_exceptions=True)
