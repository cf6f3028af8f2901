"""Billing on the default stack, as docs/billing.md says: a command prints a link, a person pays, the plan is there."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.cli.support import Said, outbox
from tests.patience import PATIENCE_SECONDS

SOLD = {
    "OUTBOX_PLANS": "free=total:3 basic=month:1000 pro=",
    "OUTBOX_BILLING_PRICES": "basic=price_basic pro=price_pro",
}
SETTINGS = DevSettings(
    firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0, environment=SOLD
)
ACCOUNT = {"provider": "simulated", "status": "active", "plan": "free"}


async def test_a_person_buys_a_plan_fails_to_pay_and_cancels() -> None:
    async with DevStack(SETTINGS) as stack, httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        # As in a terminal that has what `outbox dev` prints, and the two variables.
        env: dict[str, str | None] = {**stack.exports, **SOLD}

        async def command(*words: str) -> Said:
            return await asyncio.to_thread(outbox, *words, env=env)

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore)
            client = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
        account = client.document("accounts/shop")
        await account.set(ACCOUNT)

        async def until(**wanted: Any) -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    found = (await account.get()).to_dict() or {}
                    if {name: found.get(name) for name in wanted} == wanted:
                        return found
                    await asyncio.sleep(0.05)

        assert (await command("billing", "portal", "shop")).code == 1
        said = await command("billing", "checkout", "shop", "--plan", "pro", "--json")
        assert said.code == 0, said
        page = said.json["url"]
        assert "buy price_pro?" in (await http.get(page)).text
        await http.post(page)
        await until(plan="pro")
        shown = (await command("billing", "show", "shop", "--json")).json
        assert (shown["plan"], list(shown["subscriptions"].values())) == ("pro", ["active"])

        portal = (await command("billing", "portal", "shop")).out.strip()
        await http.post(portal, data={"action": "fail"})
        late = await until(plan="pro", planAfter="free")
        assert late["planUntil"] is not None
        await http.post(portal, data={"action": "pay"})
        await until(plan="pro", planUntil=None)
        await http.post(portal, data={"action": "cancel"})
        await until(plan="free")
        client.close()
