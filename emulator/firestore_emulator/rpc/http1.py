"""HTTP/1.1 on connections that another part has opened: uvicorn without a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

IDLE_SECONDS = 600
"""Longer than any client keeps a connection that it does not use: a server that closes one first may do so at the very
moment at which the client sends its next request, and that request is then never answered."""


class Http1:
    """Started with `await Http1.start(app)`, stopped with `await http.stop()`."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._serving = asyncio.create_task(server.serve(sockets=[]))

    @classmethod
    async def start(cls, app: Any) -> Http1:
        # Imported here: who serves gRPC alone starts sooner without it.
        import uvicorn

        class Quiet(uvicorn.Server):
            """The process has one owner of its signals, and this is not it."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        http = cls(
            Quiet(
                uvicorn.Config(
                    app, log_level="warning", lifespan="off", access_log=False, timeout_keep_alive=IDLE_SECONDS
                )
            )
        )
        while not http._server.started and not http._serving.done():  # noqa: ASYNC110 - uvicorn offers no event
            await asyncio.sleep(0.001)
        return http

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    def take(self, transport: asyncio.Transport, received: bytes) -> None:
        """The connection is uvicorn's from here on, with what has come of it so far."""
        server = self._server
        protocol = server.config.http_protocol_class(
            config=server.config, server_state=server.server_state, app_state=server.lifespan.state
        )
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(received)

    async def stop(self) -> None:
        """At once: callers that still wait for an answer get none."""
        self._server.should_exit = self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(self._serving, return_exceptions=True)
