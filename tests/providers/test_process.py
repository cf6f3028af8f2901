"""The simulator as a process: ready, webhooks over sockets, a record that outlives a kill, a clean end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from firestore_outbox.local.simulators.record import Record
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.providers.outcome import Sent, Unknown
from firestore_outbox.providers.registry import Received
from tests.patience import PATIENCE_SECONDS
from tests.providers.support import LIMIT, START, message, providers_at


async def launch(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "firestore_outbox.local.simulators", *arguments, stdout=PIPE, stderr=PIPE
    )


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[Process, str]]:
    process = await launch("--port", "0", *arguments)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        assert line.startswith("ready"), line
        yield process, line.split()[1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def listening(answers: list[int]) -> AsyncIterator[tuple[str, asyncio.Queue[tuple[str, dict[str, str], bytes]]]]:
    """A webhook on a socket: what it heard, in a queue."""
    heard: asyncio.Queue[tuple[str, dict[str, str], bytes]] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers["content-length"]))
                heard.put_nowait((head[0].split(" ")[1], headers, body))
                status = answers.pop(0) if answers else 200
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/{{provider}}/{{accountId}}", heard
    finally:
        server.close()


async def test_receipts_reach_a_webhook_over_sockets_and_are_genuine() -> None:
    async with listening([503]) as (template, heard), running("--webhook", template) as (_, url):
        adapters = providers_at(url)
        outcome = await adapters.send("simulated", message(), limit=LIMIT)
        statuses: list[str] = []
        while len(statuses) < 4:
            path, headers, body = await heard.get()
            assert path == "/simulated/acme"
            now = START.fromtimestamp(int(headers["x-simulated-signature"][2:].partition(",")[0]), START.tzinfo)
            received = await adapters.receive("simulated", "acme", headers, body, now=now)
            assert isinstance(received, Received)
            statuses.append(json.loads(body)["events"][0]["status"])
        await adapters.close()
    assert isinstance(outcome, Sent)
    assert statuses == ["sent", "sent", "delivered", "read"]


async def test_the_record_outlives_a_kill_and_keys_are_still_known(tmp_path: Path) -> None:
    data = str(tmp_path / "sub" / "calls.jsonl")
    async with (
        listening([]) as (template, heard),
        running("--data", data, "--webhook", template) as (process, url),
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as control,
    ):
        adapters = providers_at(url)
        await control.put("/_sim/faults", json={"receiptLossRate": 1})
        await adapters.send("simulated-idempotent", message("request-1"), limit=LIMIT)
        await control.put("/_sim/faults", json={"hangRate": 1})
        sending = asyncio.create_task(adapters.send("simulated", message("request-2"), limit=LIMIT))
        await heard.get()  # a receipt: the call that hangs was accepted
        process.kill()
        assert isinstance(await sending, Unknown)
        await adapters.close()
    async with (
        running("--data", data) as (process, url),
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as control,
    ):
        adapters = providers_at(url)
        await adapters.send("simulated-idempotent", message("request-1"), limit=LIMIT)
        calls: list[dict[str, Any]] = (await control.get("/_sim/calls")).json()
        await adapters.close()
    assert [(it["requestId"], it["accepted"], it["delivered"]) for it in calls] == [
        ("request-1", True, 1),
        ("request-2", True, 1),
        ("request-1", True, 0),
    ]


def test_a_line_that_a_kill_cut_short_is_dropped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    one = json.dumps(
        {"request_id": "r1", "account_id": "a", "to": "t", "at": START.isoformat(), "accepted": True, "part": 0}
        | {"delivered": 1, "idempotency_key": None, "provider_message_id": "p"}
    )
    file.write_text(f"{one}\n{one[:40]}")
    record = Record(file)
    (call,) = record.calls()
    record.add(call)
    record.close()
    assert Record(file).calls() == [call, call]


async def test_sigterm_ends_it_cleanly_even_while_a_call_hangs() -> None:
    async with (
        listening([]) as (template, heard),
        running("--webhook", template) as (process, url),
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS) as control,
    ):
        await control.put("/_sim/faults", json={"hangRate": 1})
        adapters = providers_at(url)
        sending = asyncio.create_task(adapters.send("simulated", message(), limit=LIMIT))
        await heard.get()
        process.send_signal(signal.SIGTERM)
        assert isinstance(await sending, Unknown)
        _, errors = await process.communicate()
        await adapters.close()
    assert (process.returncode, errors.decode()) == (0, "")


async def test_a_taken_port_and_a_bad_template_end_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        process = await launch("--port", port)
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 cannot be used" in errors.decode()
    assert "--port" in errors.decode()
    process = await launch("--webhook", "http://x.test/")
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "{provider} and {accountId}" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_it_can_be_embedded_started_and_stopped_twice_on_one_port() -> None:
    first = ProviderSimulator()
    await first.start()
    port = int(first.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        await ProviderSimulator().start(port=port)
    await first.stop()
    async with ProviderSimulator() as second:
        await second.start(port=port)
        async with httpx.AsyncClient(base_url=second.url, trust_env=False, timeout=PATIENCE_SECONDS) as control:
            assert (await control.get("/_sim/health")).json()["status"] == "ok"
