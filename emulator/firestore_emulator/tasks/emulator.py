"""The Cloud Tasks emulator, put together. Start it inside the event loop that will run it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from firestore_emulator.outgoing import HttpSender, Sender
from firestore_emulator.rpc.service import Service
from firestore_emulator.tasks import names
from firestore_emulator.tasks.dispatcher import Dispatcher
from firestore_emulator.tasks.engine import Engine
from firestore_emulator.tasks.oidc import GOOGLE_ISSUER, TokenIssuer
from firestore_emulator.tasks.service import service_of
from firestore_emulator.tasks.times import Clock, utc_now

DATABASE_FILE = "tasks.sqlite"
KEY_FILE = "tasks-signing-key.pem"
TOMBSTONE = timedelta(hours=24)


class TasksEmulator:
    """An engine, its dispatcher and its ways in.

    `data` is a directory, or None for memory. `send` is the network; by default a pool of HTTP connections.
    `queues` are the full names of queues that shall exist, made with production's defaults where they are
    missing. `functions` is the HOST:PORT of functions, for tasks of firebase-admin, which have no URL. `tombstone`
    is for how long the name of a gone task stays taken, `queue_tombstone` the same for queues.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        clock: Clock = utc_now,
        send: Sender | None = None,
        queues: Sequence[str] = (),
        tombstone: timedelta = TOMBSTONE,
        queue_tombstone: timedelta = timedelta(0),
        issuer: str = GOOGLE_ISSUER,
        random: Random | None = None,
        functions: str | None = None,
        survives_power_cuts: bool = False,
    ) -> None:
        self._functions = functions
        self._queues = [names.queue(name) for name in queues]
        self.engine = Engine(
            None if data is None else data / DATABASE_FILE,
            clock,
            tombstone=tombstone,
            queue_tombstone=queue_tombstone,
            random=random or SystemRandom(),
            survives_power_cuts=survives_power_cuts,
        )
        self.issuer = TokenIssuer(clock, issuer=issuer, key_file=None if data is None else data / KEY_FILE)
        self._pool = HttpSender()
        self._dispatcher = Dispatcher(self.engine, send or self._pool, self.issuer)
        self.service: Service = service_of(self.engine, self._dispatcher)

    @cached_property
    def http_app(self) -> Any:
        """The ASGI application to serve beside `service`."""
        from firestore_emulator.tasks.http import http_app  # here, since a simulation has no use for a web framework

        return http_app(self.issuer, self.reset, self.service, self._functions)

    async def start(self) -> None:
        await self._ensure_queues()
        self._dispatcher.start()

    async def stop(self, grace: timedelta = timedelta(seconds=1)) -> None:
        """Attempts under way have `grace` to end. What is cut off is made again by the next start on the same
        data.
        """
        await self._dispatcher.stop(grace)
        await self._pool.close()
        self.engine.close()

    async def reset(self) -> None:
        """Everything gone, as at a first start. Attempts under way end, and change nothing."""
        self.engine.reset()
        await self._ensure_queues()

    async def _ensure_queues(self) -> None:
        for name in self._queues:
            self.engine.queue_calls.ensure(name)
        await self.engine.settled()

    async def __aenter__(self) -> TasksEmulator:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()
