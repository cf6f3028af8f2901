"""The most that a Firestore could take of us: the commits of one of our own drains, made as fast as it accepts them.

A drain's commits are recorded as they go out. For the ceiling they are made again in a fresh project with the same
backlog: the same documents and fields in the same commits, already serialized, a few at a time, with no query, no
provider, no decision, and without the preconditions, which belong to the recorded run. Whatever our worker reaches is a
share of this; the rest is reading, deciding and waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud.firestore_v1 import types
from grpc import aio

from bench.counted import Count

IN_FLIGHT = 8
TRIES = 50
_COMMIT = "/google.firestore.v1.Firestore/Commit"
_METADATA = (("authorization", "Bearer owner"),)
_CommitRequest: Any = types.CommitRequest.pb()


@dataclass
class Recorded(Count):
    """Counts, and keeps what is committed."""

    requests: list[bytes] = field(default_factory=list)

    def called(self, method: str, message: Any) -> None:
        super().called(method, message)
        if method == "Commit":
            self.requests.append(getattr(message, "_pb", message).SerializeToString())


def for_project(requests: list[bytes], recorded_in: str, project: str) -> list[bytes]:
    """The same commits for another project, and free of what only held in the recorded one."""
    return [_moved(_CommitRequest.FromString(request), recorded_in, project) for request in requests]


def _moved(request: Any, before: str, after: str) -> bytes:
    request.database = request.database.replace(before, after, 1)
    request.ClearField("transaction")
    for write in request.writes:
        write.update.name = write.update.name.replace(before, after, 1)
        write.ClearField("current_document")
    serialized: bytes = request.SerializeToString()
    return serialized


async def commit_all(channel: aio.Channel, requests: list[bytes]) -> None:
    commit = channel.unary_unary(_COMMIT, request_serializer=None, response_deserializer=None)
    waiting = iter(requests)
    await asyncio.gather(*(_commit_some(commit, waiting) for _ in range(IN_FLIGHT)))


async def _commit_some(commit: Any, waiting: Iterator[bytes]) -> None:
    for request in waiting:
        for _ in range(TRIES):
            try:
                await commit(request, metadata=_METADATA)
                break
            except aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:  # two of them met in one document
                    raise
        else:
            raise RuntimeError(f"a commit was refused {TRIES} times")
