"""`make screenshot`: docs/chat.png, of the page on a stack of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from firestore_outbox.local.dev import DevStack
from tests.client import node
from tests.system.browser.chromium import require_chromium
from tests.system.browser.conftest import SETTINGS, told

SCRIPT = Path(__file__).parent / "screenshot.mjs"
PICTURE = node.ROOT / "docs" / "chat.png"


async def main() -> None:
    async with DevStack(SETTINGS) as stack:
        results = await node.run(SCRIPT, {**told(stack, require_chromium()), "file": str(PICTURE)})
    results.check("screenshot")


if __name__ == "__main__":
    asyncio.run(main())
