"""A planted text on the default stack with sealing on: searched for byte by byte in everything that the stack leaves.

The provider gets the text, since it delivers the message; nothing else of the stack may hold it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from firestore_outbox.settings import Settings
from firestore_outbox.web.serve import system_from_environment
from tests.client.node import ROOT, require_node
from tests.patience import PATIENCE_SECONDS
from tests.system.console.conftest import World
from tests.system.console.test_security import everything_seen_by
from tests.web.functions.firebase import unsigned_token

SCRIPT = Path(__file__).with_name("planted.mjs")
UID = "agent"
ACCOUNT = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, "onUncertain": "resend"}


def forms_of(words: str) -> Iterator[bytes]:
    """The text as it is, and as an encoder along the way might have written it."""
    raw = words.encode()
    yield raw
    yield words.encode("utf-16-le")
    yield raw.hex().encode()
    for shift in range(3):  # base64 of a longer text: what does not depend on its neighbours
        inside = base64.b64encode(b"x" * shift + raw)
        yield inside[4:-4]
        yield inside[4:-4].translate(bytes.maketrans(b"+/", b"-_"))


def found_in(folders: list[Path], words: str) -> set[str]:
    """The files that hold it in any form."""
    forms = tuple(forms_of(words))
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert files
    return {file.name for file in files if any(form in file.read_bytes() for form in forms)}


async def in_the_browser(stack: DevStack, account_id: str, *messages: dict[str, str]) -> list[dict[str, Any]]:
    given = {
        "firestore": stack.firestore,
        "project": PROJECT,
        "functions": f"http://127.0.0.1:{stack.ports['functions']}",
        "token": unsigned_token(UID),
        "accountId": account_id,
        "uid": UID,
        "messages": messages,
    }
    node = await asyncio.create_subprocess_exec(
        require_node(),
        str(SCRIPT),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(node.communicate(json.dumps(given).encode()), PATIENCE_SECONDS)
    assert node.returncode == 0, errors.decode()
    answer: list[dict[str, Any]] = json.loads(out)
    return answer


async def until(look: Any) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await look():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


async def test_a_planted_text_is_nowhere_in_plaintext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_node()
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))  # the stack's logs are there
    environment = {
        "TMPDIR": str(temporary),
        "OUTBOX_LOG_LEVEL": "DEBUG",
        "OUTBOX_LEASE_SECONDS": "6",
        "OUTBOX_SEND_TIMEOUT_SECONDS": "2",
    }
    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        console_port=0,
        data=data,
        environment=environment,
        sweep_seconds=1,
    )
    outbound, retried, killed, incoming, control = (f"planted {name} {secrets.token_hex(12)}" for name in "abcde")
    async with DevStack(settings) as stack, httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in stack.environment.items():
                patch.setenv(name, value)
            client = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
            for account_id in ("sealed", "clear"):
                await client.document(f"accounts/{account_id}").set(ACCOUNT)
                await client.document(f"accounts/{account_id}/members/{UID}").set({"role": "agent"})
            known = Settings.from_environment(stack.environment)
            async with system_from_environment(known, stack.environment) as system:
                assert system.sealing is not None
                await system.sealing.keys.create("sealed", system.sealing.kms_key)

        async def faults(**wanted: Any) -> None:
            (await http.put(f"{stack.provider_url}/_sim/faults", json=wanted)).raise_for_status()

        async def calls() -> list[str]:
            return [call["requestId"] for call in (await http.get(f"{stack.provider_url}/_sim/calls")).json()]

        # Sent by a browser; twice, and it is one message. One whose provider fails at first is retried.
        first, second = (
            {"requestId": f"request-{number}", "to": f"+49{number}", "words": words}
            for number, words in enumerate((outbound, retried))
        )
        (answer,) = await in_the_browser(stack, "sealed", first)
        assert answer == {
            "isNew": [True, False],
            "status": answer["status"],
            "types": ["sealed"],
            "parts": [{"type": "text", "text": outbound}],
        }
        await faults(errorRate=1.0)
        trying = asyncio.create_task(in_the_browser(stack, "sealed", second))
        document = client.document("outbox/request-1")

        async def has_failed() -> bool:
            return bool(((await document.get()).to_dict() or {}).get("failures"))

        await until(has_failed)
        await faults()
        await trying

        # The worker is killed while the provider has the message, and another one takes over.
        await faults(latencyMs=1500)
        third = {"requestId": "request-2", "to": "+492", "words": killed}
        ending = asyncio.create_task(in_the_browser(stack, "sealed", third))

        async def is_called() -> bool:
            return "request-2" in await calls()

        await until(is_called)
        await stack.processes["worker"].kill()
        await faults()
        await stack.processes["worker"].start()
        await ending

        # What a person writes to the account; and the same on an account that is not sealed, for comparison.
        for account_id, words in (("sealed", incoming), ("clear", control)):
            inbound = {"accountId": account_id, "from": "+493", "text": words, "provider": "simulated"}
            (await http.post(f"{stack.provider_url}/_sim/inbound", json=inbound)).raise_for_status()

            async def has_come(thread: str = f"threads/{account_id}__+493") -> bool:
                return bool((await client.document(thread).get()).exists)

            await until(has_come)
        shown = [(await http.get(f"{stack.worker_url}/metrics")).text]

        # Every page, live part and file of the console, as an operator sees them.
        console = World(stack, client)
        seen = ""
        for request_id in ("request-0", "request-1", "request-2"):
            ids = {"messages": request_id, "accounts": "sealed", "runs": "none"}
            seen += await everything_seen_by(console, "operator", ids)
        person = await console.person("operator")
        for account_id in ("sealed", "clear"):
            seen += (await person.get(f"/messages?account={account_id}&to=%2B493")).text
        await console.end()
        assert "request-2" in seen
        assert control in seen, "the console shows texts that are stored in clear"
        shown.append(seen)
        threads = [one.to_dict() async for one in client.collection("threads").stream()]
        assert [one["lastMessageText"] for one in threads if one["accountId"] == "sealed"] == [""] * 4
        client.close()
        logs = tmp_path / "logs"
        logs.mkdir()
        for name, file in stack.logs.items():  # the stack removes them when it ends
            (logs / f"{name}.log").write_bytes(file.read_bytes())
    left = [data, logs, temporary]
    assert found_in(left, control), "the search finds nothing, also where a text is stored in clear"
    for words in (outbound, retried, killed, incoming):
        assert found_in(left, words) == set()
        assert not any(form in text.encode() for form in forms_of(words) for text in shown)
