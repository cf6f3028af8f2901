"""The statuses a handler answers with.

`RpcError` is the only exception a handler raises on purpose. Anything else that escapes is a bug of the emulator:
it is logged with its traceback and answered as INTERNAL with no detail, and the server lives on.
"""

from __future__ import annotations

import grpc


class RpcError(Exception):
    """A refusal that the client sees as this status code and message."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __repr__(self) -> str:
        return f"RpcError({self.code.name}, {self.message!r})"


def invalid_argument(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.INVALID_ARGUMENT, message)


def failed_precondition(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.FAILED_PRECONDITION, message)


def not_found(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.NOT_FOUND, message)


def already_exists(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.ALREADY_EXISTS, message)


def aborted(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.ABORTED, message)


def unimplemented(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.UNIMPLEMENTED, message)


def resource_exhausted(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)


def unavailable(message: str) -> RpcError:
    return RpcError(grpc.StatusCode.UNAVAILABLE, message)
