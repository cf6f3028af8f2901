"""The Firestore emulator as one object: engine, calls, events and the HTTP side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.firestore.commit_delay import CommitDelay
from emulator.firestore.delivery import Delivery
from emulator.firestore.engine import Engine
from emulator.firestore.guard import Guard
from emulator.firestore.indexes import IndexRules
from emulator.firestore.service import FirestoreService
from emulator.firestore.times import Clock, system_clock
from emulator.firestore.transaction import Concurrency
from emulator.firestore.triggers import Triggers
from emulator.firestore.webchannel import WebChannels
from emulator.outgoing import HttpSender, Sender
from emulator.rpc.service import Service

if TYPE_CHECKING:
    from emulator.firestore.rules_file import RulesFile

DATABASE_FILE = "firestore.sqlite3"


class FirestoreEmulator:
    """Start it inside the event loop that will run it.

    `data` is a directory, or None for memory. `rules` is a firestore.rules file to enforce; None lets everybody do
    everything, until rules are loaded over HTTP. `indexes` is a firestore.indexes.json to hold queries to; None serves
    every query, as Google's emulator does. `functions` is the HOST:PORT that events go to; None delivers none.
    `concurrency` is for read-write transactions that do not ask for one themselves. `commit_delay` separates a commit's
    server timestamps from the moment at which it becomes visible, as production does; None: both are one moment.
    """

    def __init__(
        self,
        data: Path | None = None,
        clock: Clock = system_clock,
        indexes: Path | None = None,
        rules: Path | None = None,
        databases: Sequence[str] = ("(default)",),
        functions: str | None = None,
        send: Sender | None = None,
        concurrency: Concurrency = Concurrency.PESSIMISTIC,
        commit_delay: CommitDelay | None = None,
    ) -> None:
        needed = None if indexes is None else IndexRules.load(indexes)
        self.engine = Engine(None if data is None else data / DATABASE_FILE, clock, needed)
        self.guard = Guard(self.engine)
        self._rules = None if rules is None else self._load(rules)
        service = FirestoreService(self.engine, databases, concurrency, commit_delay, self.guard)
        self.service: Service = service.table()
        self.triggers = Triggers(self.engine)
        self._channels = WebChannels(self.service)
        self._pool = HttpSender()
        self._delivery = (
            None if functions is None else Delivery(self.engine, self.triggers, functions, send or self._pool)
        )

    def _load(self, rules: Path) -> RulesFile:
        from emulator.firestore.rules_file import RulesFile  # here, since a simulation has no use for a parser

        try:
            return RulesFile(rules, self.guard)
        except BaseException:
            self.engine.close()
            raise

    @cached_property
    def http_app(self) -> Any:
        """The ASGI application to serve beside `service`."""
        from emulator.firestore.http import http_app  # here, since a simulation has no use for a web framework

        return http_app(self.engine, self.triggers, self.service, self._channels, self.guard)

    async def start(self) -> None:
        if self._rules is not None:
            self._rules.start()
        if self._delivery is not None:
            self._delivery.start()

    async def stop(self) -> None:
        await self._channels.close()
        if self._rules is not None:
            await self._rules.stop()
        if self._delivery is not None:
            await self._delivery.stop()
        await self._pool.close()
        self.engine.close()
