"""The Firestore emulator as one object: engine, calls, events and the HTTP side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.firestore.engine import Engine
from emulator.firestore.indexes import IndexRules
from emulator.firestore.service import FirestoreService
from emulator.firestore.times import Clock, system_clock
from emulator.rpc.service import Service


class FirestoreEmulator:
    """`data` None keeps everything in memory; `indexes` None serves every query, as Google's emulator does."""

    def __init__(
        self,
        data: Path | None = None,
        clock: Clock = system_clock,
        indexes: Path | None = None,
        databases: Sequence[str] = ("(default)",),
    ) -> None:
        rules = None if indexes is None else IndexRules.load(indexes)
        self.engine = Engine(None if data is None else data / "firestore.sqlite3", clock, rules)
        self.service: Service = FirestoreService(self.engine, databases).table()
        self.http_app: Any = None

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        self.engine.close()
