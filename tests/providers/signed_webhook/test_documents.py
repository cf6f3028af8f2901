"""The examples of docs/providers.md do what the document says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firestore_outbox.providers.outcome import AuthFailed, Sent
from firestore_outbox.providers.protocol import InboundMessage, PartReceipt
from firestore_outbox.providers.signed_webhook.adapter import NAME
from tests.providers.answering import Answering
from tests.providers.linked import linked
from tests.providers.support import START, message, providers_at, text

DOCUMENT = Path(__file__).parents[3] / "docs" / "providers.md"


def example(number: int) -> SimpleNamespace:
    blocks = DOCUMENT.read_text(encoding="utf-8").split("```python\n")[1:]
    code, names = blocks[number].partition("```")[0], {"__name__": "example"}
    exec(code, names)
    return SimpleNamespace(**names)


@pytest.fixture
def receiver() -> Iterator[SimpleNamespace]:
    it = example(0)
    it.Receiver.log_message = lambda *args: None
    server = ThreadingHTTPServer(("127.0.0.1", 0), it.Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    it.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield it
    server.shutdown()
    server.server_close()
    thread.join()


async def test_the_receiver_delivers_each_key_once(receiver: SimpleNamespace) -> None:
    async with linked(NAME, url=receiver.url, receiver=receiver.url, signingSecret="signing secret") as link:
        for _ in range(2):
            outcome = await link.send(message(parts=(text("one"), text("two"))))
            assert outcome == Sent(provider_message_id="id-of-request-1:1:2")
    assert receiver.ids == {"request-1:0": "id-of-request-1:0:2", "request-1:1": "id-of-request-1:1:2"}


async def test_the_receiver_refuses_what_we_did_not_sign(receiver: SimpleNamespace) -> None:
    async with linked(NAME, url=receiver.url, receiver=receiver.url, signingSecret="another") as link:
        assert isinstance(await link.send(message()), AuthFailed)
    assert receiver.ids == {}


@pytest.mark.parametrize(("secret", "works"), [("signing secret", True), ("another", False)])
async def test_the_receiver_tells_whether_it_has_our_secret(
    receiver: SimpleNamespace, secret: str, works: bool
) -> None:
    async with linked(NAME, url=receiver.url) as link:
        assert (await link.check(url=receiver.url, signingSecret=secret)).works is works
    assert receiver.ids == {}


async def test_what_the_receiver_tells_is_genuine_and_understood() -> None:
    at = START.isoformat()
    receipt = {"type": "receipt", "providerMessageId": "r-1", "echo": "request-1:0:1", "status": "read", "at": at}
    parts = [{"type": "text", "text": "hi"}]
    inbound = {"type": "inbound", "providerMessageId": "r-2", "from": "4915112345", "at": at, "parts": parts}
    async with Answering(200) as webhook:
        await asyncio.to_thread(example(1).tell, webhook.url, receipt, inbound)
    (call,) = webhook.calls
    adapter: Any = providers_at("http://nowhere")[NAME]
    assert adapter.verify(call.headers, call.body, "webhook secret", now=datetime.now(UTC))
    assert [type(event) for event in adapter.parse(call.body)] == [PartReceipt, InboundMessage]
