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
SHOTS = [
    {"name": "console", "path": "/", "width": 1180, "height": 720, "colorScheme": "light", "person": "Olivia"},
    {"name": "console-message", "path": "/messages/MESSAGE", "width": 1180, "height": 620, "colorScheme": "dark"}
    | {"person": "Otto"},
]
LOOKED_AT = [
    {"name": f"{name}-{width}", "path": path, "width": width, "height": 900, "colorScheme": scheme, "person": "Olivia"}
    for width, scheme in ((320, "light"), (768, "dark"), (2560, "light"))
    for name, path in (
        *(("now", "/"), ("needs", "/needs"), ("messages", "/messages"), ("message", "/messages/MESSAGE")),
        *(("reminder", "/reminders/new?account=shop"), ("settings", "/accounts/shop/settings")),
        *(("phone", "/accounts/bakery/phone"), ("account", "/accounts/shop"), ("dev", "/dev")),
    )
]
"""Further ones for a person who changes the pages: `python -m tests.system.console.screenshot FOLDER`."""


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
        asyncio.run(main(Path(sys.argv[1]), [*SHOTS, *LOOKED_AT]))
    else:
        asyncio.run(main())
