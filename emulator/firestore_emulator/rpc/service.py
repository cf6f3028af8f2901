"""A service is a name and a table of methods. Everything that carries calls (sockets, in-process) reads this table.

Handlers work on raw protobuf messages, not on proto-plus wrappers: wrapping costs several times the work itself.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from firestore_emulator.rpc.errors import RpcError

log = logging.getLogger(__name__)

# A raw protobuf message. The classes are made at run time from descriptors, so there is no static type to name.
Message = Any


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler may know of the call besides its request."""

    metadata: Mapping[str, str]
    is_billed: bool = True
    """False for what the emulator does on behalf of its own admin calls."""


UnaryHandler = Callable[[Message, Call], Awaitable[Message]]
ServerStreamHandler = Callable[[Message, Call], AsyncIterator[Message]]
BidiStreamHandler = Callable[[AsyncIterator[Message], Call], AsyncIterator[Message]]


@dataclass(frozen=True, slots=True)
class Unary:
    request: Message
    handler: UnaryHandler


@dataclass(frozen=True, slots=True)
class ServerStream:
    request: Message
    handler: ServerStreamHandler


@dataclass(frozen=True, slots=True)
class BidiStream:
    request: Message
    handler: BidiStreamHandler


Method = Unary | ServerStream | BidiStream


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    """The full protobuf name, for instance `google.firestore.v1.Firestore`."""
    methods: Mapping[str, Method]

    def paths(self) -> dict[str, Method]:
        """The methods under the path a client calls them by."""
        return {f"/{self.name}/{name}": method for name, method in self.methods.items()}


def refusal_of(error: Exception, method: str) -> RpcError:
    """What a client gets when a handler raised; only a bug is logged."""
    if isinstance(error, RpcError):
        return error
    log.error("a handler failed", exc_info=error, extra={"action": "rpc_internal_error", "method": method})
    return RpcError(grpc.StatusCode.INTERNAL, f"internal error in {method}; the emulator's log has the details")
