"""The console's pictures in docs/, as part of `make screenshot`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from firestore_outbox.local.dev import PROJECT, DevStack
from tests.client import node
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.chromium import require_chromium
from tests.system.console.conftest import CONSOLE

SCRIPT = Path(__file__).parent / "screenshot.mjs"
DOCS = node.ROOT / "docs"
SHOTS: list[dict[str, object]] = [
    {"name": "console", "path": "/", "width": 1280, "height": 800, "colorScheme": "light", "person": "Olivia"},
    {"name": "console-message", "path": "/messages/READ", "width": 1280, "height": 620, "colorScheme": "dark"}
    | {"person": "Otto"},
    {"name": "console-needs", "path": "/needs", "width": 1280, "height": 720, "colorScheme": "light", "person": "Otto"},
    {"name": "console-run", "path": "/runs/RUN", "width": 1280, "height": 520, "colorScheme": "light"}
    | {"person": "Otto"},
]
PAGES = (
    *(("sign-in", "/sign-in"), ("now", "/"), ("needs", "/needs"), ("messages", "/messages")),
    *(("message", "/messages/MESSAGE"), ("message-read", "/messages/READ"), ("nothing", "/messages?account=no-such")),
    *(("runs", "/runs"), ("run", "/runs/RUN"), ("cancel", "/runs/RUN/cancel"), ("reminders", "/reminders/new")),
    *(("reminder", "/reminders/new?account=shop"), ("reminder-check", "/reminders/new?account=shop")),
    *(("account", "/accounts/shop"), ("parked", "/accounts/garage"), ("settings", "/accounts/shop/settings")),
    *(("phone", "/accounts/bakery/phone"), ("contacts", "/accounts/shop/contacts")),
    *(("redrive", "/accounts/shop/redrive"), ("lanes", "/lanes"), ("audit", "/audit"), ("dev", "/dev")),
    ("missing", "/messages/no-such-message"),
)
LOOKED_AT: list[dict[str, object]] = [
    {"name": f"{name}-{width}-{scheme}", "path": path, "width": width, "height": 800, "colorScheme": scheme}
    | {"person": "Olivia", "isWhole": True, "step": name if name == "reminder-check" else None}
    for width in (320, 768, 1280, 2560)
    for scheme in ("light", "dark")
    for name, path in PAGES
]
"""Every page for a person who changes the pages: `python -m tests.system.console.screenshot FOLDER [PAGE ...]`."""


async def main(folder: Path = DOCS, shots: list[dict[str, object]] | None = None) -> None:
    async with DevStack(CONSOLE) as stack:
        world = {
            "chromium": require_chromium(),
            "console": stack.console_url,
            "firestore": stack.firestore,
            "projectId": PROJECT,
            "patienceMs": PATIENCE_SECONDS * 1000,
            "folder": str(folder),
            "shots": SHOTS if shots is None else shots,
        }
        (await node.run(SCRIPT, world)).check("screenshot")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        chosen = [one for one in LOOKED_AT if not sys.argv[2:] or str(one["name"]).rsplit("-", 2)[0] in sys.argv[2:]]
        asyncio.run(main(Path(sys.argv[1]), chosen))
    else:
        asyncio.run(main())
