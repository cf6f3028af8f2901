"""`make screenshot`: the pictures in docs/, of the page and of two commands, on stacks of their own."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import httpx

from firestore_outbox.local.dev import DevStack
from tests.client import node
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.chromium import require_chromium
from tests.system.browser.conftest import SETTINGS, told
from tests.system.browser.terminal import picture, printed
from tests.system.console import screenshot as console
from tests.web.functions.firebase import unsigned_token

SCRIPT = Path(__file__).parent / "screenshot.mjs"
DOCS = node.ROOT / "docs"
FREE = [
    f"--{part}-port=0"
    for part in ("firestore", "tasks", "functions", "worker", "provider", "page", "console", "identity")
]
MESSAGE = {"requestId": "first-message", "accountId": "shop", "to": "+491511234567"}


async def main() -> None:
    terminals = {"dev": await dev()}
    async with DevStack(SETTINGS) as stack:
        terminals["run"] = await run(stack)
        world = {**told(stack, require_chromium()), "folder": str(DOCS), "terminals": terminals}
        results = await node.run(SCRIPT, world)
    results.check("screenshot")
    await console.main()


async def dev() -> str:
    """`outbox dev`, with a message that was sent. The ports are shown as they are without options."""
    sending: list[asyncio.Task[None]] = []

    def enough(raw: str) -> bool:
        address = re.search(r"functions=(http://\S+)", raw)
        if address and "Ctrl-C stops the stack" in raw and not sending:
            sending.append(asyncio.get_running_loop().create_task(send(address[1])))
        return "first-message" in raw

    output = await printed(["dev", *FREE], {}, enough)
    shown = re.sub(r"/\S*/(outbox-logs-\w+)", r"/tmp/\1", output)
    hosts = {
        "FIRESTORE_EMULATOR_HOST": 8080,
        "CLOUD_TASKS_EMULATOR_HOST": 8123,
        "FIREBASE_AUTH_EMULATOR_HOST": 8086,
        "OUTBOX_KMS_EMULATOR_HOST": 8083,
    }
    for part, port in hosts.items():
        shown = shown.replace(re.findall(rf"{part}=(127\.0\.0\.1:\d+)", shown)[0], f"127.0.0.1:{port}")
    for part, port in (("functions", 8081), ("worker", 8082), ("provider", 8083), ("page", 8084), ("console", 8085)):
        shown = shown.replace(re.findall(rf"{part}=(http://127\.0\.0\.1:\d+)", shown)[0], f"http://127.0.0.1:{port}")
    return picture("outbox dev", shown)


async def send(functions: str) -> None:
    headers = {"authorization": f"Bearer {unsigned_token('demo-user')}"}
    body = {**MESSAGE, "parts": [{"type": "text", "text": "Hello"}]}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        (await http.post(f"{functions}/v1/messages", json=body, headers=headers)).raise_for_status()


async def run(stack: DevStack) -> str:
    """`outbox runs show --follow`, of a run that is being sent."""
    now = datetime.now(UTC).replace(microsecond=0)
    body = {
        "reminderId": "saturday-offer",
        "accountId": "clinic",
        "targets": [f"+4915112340{number:03}" for number in range(30)],
        "parts": [{"type": "text", "text": "Fresh tulips on Saturday"}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": now.isoformat()},
    }
    headers = {"authorization": f"Bearer {unsigned_token('demo-user')}"}
    run_id = f"saturday-offer-{now:%Y%m%dT%H%M%SZ}"
    url = f"http://127.0.0.1:{stack.ports['functions']}/v1"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        (await http.post(f"{url}/reminders", content=json.dumps(body), headers=headers)).raise_for_status()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await http.get(f"{url}/runs/{run_id}", headers=headers)).status_code != httpx.codes.OK:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    output = await printed(
        ["runs", "show", run_id, "--follow"], stack.environment, lambda raw: bool(re.search(r"(?<!\d)1\d/30", raw))
    )
    return picture(f"outbox runs show {run_id} --follow", output)


if __name__ == "__main__":
    asyncio.run(main())
