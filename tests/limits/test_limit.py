"""`from firestore_outbox import Limit`, as a program of its own uses it: real processes, a real emulator, real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from firestore_outbox import Limit
from firestore_outbox.limits.line import Rate
from firestore_outbox.limits.store import BadLimit
from firestore_outbox.limits.transport import retry_after_of
from tests.emulator.process import COMMAND
from tests.limits.worlds import never_above
from tests.patience import PATIENCE_SECONDS

PROGRAM = """
import asyncio, json, sys
from datetime import UTC, datetime
from firestore_outbox import Limit

async def main():
    limit, calls = Limit("api", per_second=100, burst=10), []
    async def caller():
        while len(calls) < int(sys.argv[1]):
            async with limit:
                calls.append(datetime.now(UTC).isoformat())
    await asyncio.gather(*(caller() for _ in range(10)))
    await limit.close()
    print(json.dumps(calls))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    command = [str(COMMAND), "emulator", "--firestore-port=0", "--tasks-port=0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["FIRESTORE_EMULATOR_HOST"]
        finally:
            process.kill()


def test_eight_processes_together_never_exceed_the_rate(emulator: str) -> None:
    environment = os.environ | {"FIRESTORE_EMULATOR_HOST": emulator, "GOOGLE_CLOUD_PROJECT": "demo-outbox"}
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, "40"], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    calls = [
        datetime.fromisoformat(at)
        for process in processes
        for at in json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0])
    ]
    assert len(calls) >= 8 * 40
    # A program notes a call's time a moment after its turn. On a loaded machine it may note a second's turns at once.
    assert never_above(calls, Rate(per_second=100, burst=10 + 100))


class Api(BaseHTTPRequestHandler):
    """Answers the second call with a 429, and the others with what they sent."""

    protocol_version = "HTTP/1.1"
    seen: list[float]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).seen.append(datetime.now(UTC).timestamp())
        is_throttled = len(type(self).seen) == 2
        self.send_response(429 if is_throttled else 200)
        if is_throttled:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def api() -> Iterator[tuple[str, list[float]]]:
    Api.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Api.seen
    server.shutdown()
    server.server_close()


def test_the_transport_waits_for_a_429_and_repeats_the_request(
    emulator: str, api: tuple[str, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", emulator)
    url, seen = api

    async def main() -> list[str]:
        limit = Limit("transport", per_second=50, burst=5)
        async with httpx.AsyncClient(transport=limit.transport()) as client:
            answers = [await client.post(url, content=f"body {number}") for number in range(3)]
        await limit.close()
        assert all(answer.status_code == 200 for answer in answers)
        return [answer.text for answer in answers]

    assert asyncio.run(main()) == ["body 0", "body 1", "body 2"]
    assert len(seen) == 4
    assert seen[2] - seen[1] >= 1, "the repetition waits for as long as Retry-After says"


def test_a_name_that_cannot_be_used_is_refused_at_once() -> None:
    with pytest.raises(BadLimit, match="app-"):
        Limit("app-interakt")
    with pytest.raises(BadLimit, match="perSecond must be above 0"):
        Limit("api", per_second=0)


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_of(header, NOON) == seconds
    assert timedelta(seconds=seconds or 0) >= timedelta(0)
