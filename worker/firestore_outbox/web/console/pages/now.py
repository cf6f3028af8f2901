"""Now: how each account stands, what waits for a person, and whether anything is stuck."""

from __future__ import annotations

from typing import Any

from firestore_outbox.lane.recent import together
from firestore_outbox.operations.overview import DOLLARS_A_MILLION
from firestore_outbox.web.console.deeds import Deed
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer

MOST_TILES = 24


async def load(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    overview, accounts = console.system.overview, viewer.accounts
    tiles = await overview.accounts(accounts, limit=MOST_TILES, after=params.get("after") or None)
    hour, today = together([tile.hour for tile in tiles]), sum(tile.sent_today for tile in tiles)
    return {
        "tiles": tiles,
        "plots": [(name, [getattr(minute, name) for minute in hour]) for name in ("sent", "failed", "throttled")],
        "today": today,
        "dollars": [today * price / 1_000_000 for price in DOLLARS_A_MILLION],
        "more": tiles[-1].account_id if len(tiles) == MOST_TILES else None,
        "waiting": await overview.waiting_for_a_person(accounts),
        "health": await overview.health() if accounts is None else None,
    }


SCREENS = (Screen(path="/", template="now.html", title="Now", section="now", load=load, options=("after",)),)
DEEDS: tuple[Deed, ...] = ()
