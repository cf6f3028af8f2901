"""An index file that also takes notes: which queries were asked, and which of them it would refuse."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from firestore_emulator.queries import plan
from firestore_emulator.queries.indexes import IndexRules
from firestore_emulator.queries.plan import Shape
from firestore_emulator.queries.query import Query
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.virtual_time import run
from firestore_outbox.local.simulation.play import Play
from firestore_outbox.local.simulation.run import TIME_LIMIT
from firestore_outbox.local.simulation.scenario import draw

ROOT = Path(__file__).parents[2]
FILE = ROOT / "firestore.indexes.json"


def content() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def refusal(rules: IndexRules, query: Query) -> str | None:
    try:
        rules.check(query)
    except RpcError as error:
        return error.message
    return None


class Notes(IndexRules):
    """Serves every query, and remembers it."""

    def __init__(self) -> None:
        super().__init__((), {})
        self.queries: list[Query] = []

    def check(self, query: Query) -> None:
        self.queries.append(query)

    @property
    def shapes(self) -> set[Shape]:
        return {scan.shape for query in self.queries for scan in plan.scans(query)}


@contextmanager
def notes_taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    """Every emulator that is started inside with an index file takes its notes here, in place of refusing."""
    notes = Notes()
    with monkeypatch.context() as patch:
        patch.setattr(IndexRules, "load", lambda path: notes)
        yield notes


def times_in(seed: int) -> set[tuple[str, str]]:
    """Plays a simulated world. (collection, field) of every field that was ever a time in one of its documents."""

    async def main() -> set[tuple[str, str]]:
        play = Play(scenario)
        try:
            await play.run()
            return {
                (seen.path.split("/")[-2], name)
                for seen in play.world.truth.changes
                for name, value in (seen.data or {}).items()
                if isinstance(value, datetime)
            }
        finally:
            await play.world.stop()

    scenario = draw(seed)
    logging.disable(logging.CRITICAL)  # of its troubles it says enough
    try:
        return run(main(), seed=seed, start=scenario.start, time_limit=TIME_LIMIT)
    finally:
        logging.disable(logging.NOTSET)
