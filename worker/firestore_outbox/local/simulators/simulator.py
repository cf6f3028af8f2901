"""The provider simulator, put together. Start it inside the event loop that will run it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from starlette.applications import Starlette
from starlette.routing import Route

from firestore_emulator.outgoing import HttpSender, Sender
from firestore_outbox.local.simulators.app import FORMS, SimulatorApp
from firestore_outbox.local.simulators.core import Clock, ProviderCore
from firestore_outbox.local.simulators.inprocess import InProcessTransport
from firestore_outbox.local.simulators.record import Record
from firestore_outbox.local.simulators.webhooks import Webhooks

HOST = "127.0.0.1"
DEFAULT_SECRET = "simulated-webhook-secret"
"""Signs webhooks on machines without a secret of their own."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ProviderSimulator:
    """`webhook` is a URL with {provider} and {accountId} in it; None sends no receipts. `data` is a file for the
    record of calls. `send` is the network of the webhooks; by default a pool of connections. `others` are routes that
    are served beside the provider's API.

    Over sockets: `await start(port=…)`. Without: give `transport` to an httpx client.
    """

    def __init__(
        self,
        *,
        webhook: str | None = None,
        secret: str = DEFAULT_SECRET,
        data: Path | None = None,
        clock: Clock = _utc_now,
        random: Random | None = None,
        send: Sender | None = None,
        others: Sequence[Route] = (),
    ) -> None:
        self._pool = HttpSender()
        self.webhooks = Webhooks(webhook, secret, send or self._pool, clock, FORMS)
        self.core = ProviderCore(Record(data), clock=clock, random=random or Random())
        self._app = SimulatorApp(self.core, self.webhooks, others)
        self.transport = InProcessTransport(self.app)
        self.url = ""
        self._listener: object | None = None

    @property
    def app(self) -> Starlette:
        return self._app.starlette

    async def start(self, *, port: int = 0, host: str = HOST) -> None:
        """Listen; port 0 takes a free one, a taken one is an OSError. `url` tells where."""
        from firestore_outbox.local.simulators.server import (
            Listener,  # here, since a simulation has no use for a web server
        )

        self._listener = listener = await Listener.start(self.app, host=host, port=port)
        self.url = f"http://{listener.address}"

    async def stop(self) -> None:
        """Calls under way are answered, or cut where they hang; webhooks that were not taken yet never will be."""
        from firestore_outbox.local.simulators.server import Listener

        self._app.release()
        if isinstance(self._listener, Listener):
            await self._listener.stop()
        await self.webhooks.stop()
        await self._pool.close()
        self.core.record.close()

    async def __aenter__(self) -> ProviderSimulator:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()
