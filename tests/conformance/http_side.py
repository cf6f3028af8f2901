"""The HTTP calls of random cases: clearing a database, and commits over REST."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import grpc
import httpx
from google.protobuf import json_format

from firestore_emulator.emulator import FirestoreEmulator
from tests.conformance.backends import Backend, Place, Refused
from tests.conformance.wire import UNARY, Proto
from tests.patience import PATIENCE_SECONDS

OWNER = {"authorization": "Bearer owner"}


class HttpSide:
    """One Firestore over HTTP. The client is made for the first call, as most cases make none."""

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make

    @classmethod
    def at(cls, place: Place) -> HttpSide:
        """Over a socket."""
        return cls(lambda: _client(base_url=f"http://{place.address}"))

    @classmethod
    def of(cls, emulator: FirestoreEmulator) -> HttpSide:
        """In this process."""
        return cls(lambda: _client(base_url="http://emulator", transport=httpx.ASGITransport(emulator.http_app)))

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        return self._make()

    async def close(self) -> None:
        if "_client" in vars(self):
            await self._client.aclose()

    async def clear(self, backend: Backend) -> None:
        answer = await self._client.delete(f"/emulator/v1/{backend.root}")
        answer.raise_for_status()

    async def commit(self, backend: Backend, writes: list[dict[str, Any]]) -> Proto:
        """A commit of writes in JSON; the answer is the message that gRPC answers with."""
        answer = await self._client.post(f"/v1/{backend.root}:commit", json={"writes": writes}, headers=OWNER)
        body = answer.json()
        if answer.is_error:
            raise Refused(grpc.StatusCode[body["error"]["status"]], body["error"]["message"])
        return json_format.ParseDict(body, UNARY["Commit"]())


def _client(**options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS, **options)
