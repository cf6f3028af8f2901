"""`outbox sessions`: the hot set."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from firestore_outbox.cli.output import Json, console, show_json, show_table
from firestore_outbox.cli.system import with_system

if TYPE_CHECKING:
    from firestore_outbox.wiring import System

NAMES = {"account_id": "accountId", "shard": "set"}
"""Fields whose name in the output differs."""


def register(app: typer.Typer) -> None:
    app.command()(sessions)


def sessions(as_json: Json = False) -> None:
    """Show which accounts' sessions are up, and which accounts wait for a slot."""

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.sessions.listing import listed
        from firestore_outbox.sessions.shares import usable

        sets: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        for shard in await system.sessions.shards():
            hot, number, layout = shard.hot, shard.number, shard.layout
            rules = layout.rules(system.settings.hot_rules, number, usable(hot, number, layout))
            slots = listed(shard.name, hot, system.clock(), rules)
            sets.append({"set": shard.name, "slots": slots.total, "free": slots.free})
            rows += [{NAMES.get(field, field): value for field, value in asdict(row).items()} for row in slots.rows]
        total, free = sum(one["slots"] for one in sets), sum(one["free"] for one in sets)
        return {"slots": total, "free": free, "sets": sets, "sessions": rows}

    found = with_system(work)
    if as_json:
        show_json(found)
        return
    columns = ["set", "accountId", "provider", "state", "use", "since", "until"]
    rows = [[row[name] for name in columns] for row in found["sessions"]]
    show_table(columns, rows, "no session is up, and no account waits for one")
    for one in found["sets"]:
        console.print(f"{one['set']}: {one['free']} of {one['slots']} slots are free", soft_wrap=True)
