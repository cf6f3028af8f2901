"""`make screenshot`: docs/chat.png, of the page on a stack of its own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from emulator.dev import DevStack
from tests.browser.conftest import BROWSERS, SETTINGS, told
from tests.client import node

SCRIPT = Path(__file__).parent / "screenshot.mjs"
PICTURE = node.ROOT / "docs" / "chat.png"


async def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("no Chromium: install chromium")
    async with DevStack(SETTINGS) as stack:
        results = await node.run(SCRIPT, {**told(stack, browser), "file": str(PICTURE)})
    results.check("screenshot")


if __name__ == "__main__":
    asyncio.run(main())
