"""The Firestore emulator as one object: engine, calls, events and the HTTP side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firestore_emulator.calls.service import FirestoreService
from firestore_emulator.documents.times import Clock, system_clock
from firestore_emulator.events.delivery import Delivery
from firestore_emulator.events.triggers import Triggers
from firestore_emulator.outgoing import HttpSender, Sender
from firestore_emulator.queries.indexes import IndexRules
from firestore_emulator.rpc.service import Service
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.databases import DEFAULT, Databases
from firestore_emulator.storage.engine import Engine
from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_emulator.transactions.transaction import Concurrency
from firestore_emulator.wire.webchannel import WebChannels

if TYPE_CHECKING:
    from firestore_emulator.rules.file import RulesFile

DATABASE_FILE = "firestore.sqlite3"


class FirestoreEmulator:
    """Start it inside the event loop that will run it.

    `data` is a directory, or None for memory. `rules` is a firestore.rules file to enforce; None lets everybody do
    everything, until rules are loaded over HTTP. `indexes` is a firestore.indexes.json to hold queries to; None serves
    every query, as Google's emulator does. `databases` are the ids of those that every project has. `functions` is the
    HOST:PORT that events go to; None delivers none.
    `concurrency` is for read-write transactions that do not ask for one themselves. `commit_delay` separates a commit's
    server timestamps from the moment at which it becomes visible, as production does; None: both are one moment.
    `survives_power_cuts` syncs each commit to the disk.
    """

    def __init__(
        self,
        data: Path | None = None,
        clock: Clock = system_clock,
        indexes: Path | None = None,
        rules: Path | None = None,
        databases: Sequence[str] = (DEFAULT,),
        functions: str | None = None,
        send: Sender | None = None,
        concurrency: Concurrency = Concurrency.PESSIMISTIC,
        commit_delay: CommitDelay | None = None,
        survives_power_cuts: bool = False,
    ) -> None:
        needed = None if indexes is None else IndexRules.load(indexes)
        file = None if data is None else data / DATABASE_FILE
        self.engine = Engine(file, clock, needed, survives_power_cuts=survives_power_cuts)
        self.guard = Guard(self.engine)
        self._rules = None if rules is None else self._load(rules)
        self.databases = Databases(self.engine, databases)
        service = FirestoreService(self.engine, self.databases, concurrency, commit_delay, self.guard)
        self.service: Service = service.table()
        self.triggers = Triggers(self.engine)
        self._channels = WebChannels(self.service)
        self._pool = HttpSender()
        self._delivery = (
            None if functions is None else Delivery(self.engine, self.triggers, functions, send or self._pool)
        )

    def _load(self, rules: Path) -> RulesFile:
        from firestore_emulator.rules.file import RulesFile  # here, since a simulation has no use for a parser

        try:
            return RulesFile(rules, self.guard)
        except BaseException:
            self.engine.close()
            raise

    @cached_property
    def http_app(self) -> Any:
        """The ASGI application to serve beside `service`."""
        from firestore_emulator.wire.http import http_app  # here, since a simulation has no use for a web framework

        return http_app(self.engine, self.triggers, self.service, self._channels, self.guard, self.databases)

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
