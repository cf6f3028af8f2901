"""Clients that write to a database which the stack does not serve: nothing of it is sent, and `outbox dev` says so."""

from __future__ import annotations

import asyncio
import contextlib

import httpx

from firestore_outbox.local.dev_log import Tell

STRANGERS_SECONDS = 2.0
"""Between two looks for documents in databases that the stack does not serve."""


async def report_strangers(firestore: str, project: str, tell: Tell) -> None:
    """Report each database that holds documents and that no part of the stack works on, once, until cancelled.

    Google's emulator does not list databases: do not call this with it."""
    known = {f"projects/{project}/databases/(default)"}
    async with httpx.AsyncClient(trust_env=False, timeout=30, base_url=f"http://{firestore}") as client:
        while True:
            await asyncio.sleep(STRANGERS_SECONDS)
            with contextlib.suppress(httpx.HTTPError):  # the emulator starts again
                answer = await client.get("/emulator/v1/databases")
                found = {one["name"] for one in answer.json()["databases"]} if answer.is_success else set()
                for name in sorted(found - known):
                    tell(stranger(name, project))
                known |= found


def stranger(name: str, project: str) -> str:
    """What to do about documents in this database (`projects/x/databases/y`), which the stack does not serve."""
    _, other, _, database = name.split("/")
    if other != project:
        return (
            f"! a client writes to project {other}, and this stack serves project {project}: nothing of it is sent."
            f" Use the project id {project} in that client, or start `outbox dev --project {other}`"
        )
    return (
        f"! a client writes to the database {database}, and the outbox works on (default): nothing of it is sent."
        " Use (default) in that client"
    )
