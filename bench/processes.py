"""What the processes of a stack hold: memory and open handles, as /proc tells; and whether they still answer."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from firestore_outbox.local.dev import DevStack

HEALTH = {"worker": "/healthz", "functions": "/healthz", "provider": "/_sim/health", "google": "/"}
"""Any answer below 500 will do: Firestore has nothing at its root."""


@dataclass(frozen=True, slots=True)
class Held:
    megabytes: float
    """Resident."""
    handles: int


def held(pid: int) -> Held | None:
    """None: it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        handles = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None
    return Held(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, handles)


def all_held(stack: DevStack) -> dict[str, Held | None]:
    return {name: held(process.pid) for name, process in stack.processes.items()}


@dataclass(frozen=True, slots=True)
class Answered:
    """What one look at everybody's health showed."""

    seconds: dict[str, float]
    """By process, how long its answer took."""
    faults: list[str]


async def health(stack: DevStack, within_seconds: float) -> Answered:
    seconds: dict[str, float] = {}
    faults: list[str] = []
    ports = {**stack.ports, "google": stack.ports["firestore"]}

    async def ask(http: httpx.AsyncClient, name: str, path: str) -> None:
        began = time.monotonic()
        try:
            status = (await http.get(f"http://127.0.0.1:{ports[name]}{path}")).status_code
        except httpx.HTTPError as error:
            faults.append(f"{name} gave no answer within {within_seconds:g} s ({type(error).__name__})")
            return
        seconds[name] = time.monotonic() - began
        if status >= 500:
            faults.append(f"{name} answered {status}")

    async with httpx.AsyncClient(trust_env=False, timeout=within_seconds) as http:
        await asyncio.gather(*(ask(http, name, path) for name, path in HEALTH.items()))
    faults += [f"{name} is gone" for name, process in stack.processes.items() if not process.is_running]
    return Answered(seconds, faults)
