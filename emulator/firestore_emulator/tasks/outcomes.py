"""What came of an attempt: a closed set, and how each member counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

import grpc

from firestore_emulator.outgoing import Answered


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer within the dispatch deadline."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The request did not get through, or its answer did not."""

    reason: str


Outcome = Answered | TimedOut | Unreachable


def succeeded(outcome: Outcome) -> bool:
    return isinstance(outcome, Answered) and 200 <= outcome.status <= 299


def slows_the_queue(outcome: Outcome) -> bool:
    return isinstance(outcome, Answered) and outcome.status in (429, 503)


def is_execution(outcome: Outcome) -> bool:
    """Production counts an answer as an execution unless it is a 5xx."""
    return isinstance(outcome, Answered) and outcome.status < 500


def retry_after(outcome: Outcome) -> timedelta:
    return outcome.retry_after if isinstance(outcome, Answered) else timedelta(0)


def status_told(outcome: Outcome) -> int:
    """As the next attempt's X-CloudTasks-TaskPreviousResponse header tells it: production says 504 for a
    timeout.
    """
    match outcome:
        case Answered():
            return outcome.status
        case TimedOut():
            return 504
        case Unreachable():
            return 503
        case _:
            assert_never(outcome)


_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.ABORTED,
    416: grpc.StatusCode.OUT_OF_RANGE,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}


def rpc_status(http_status: int) -> tuple[int, str]:
    """The code and message of an attempt's `response_status`."""
    code = _CODES.get(http_status)
    if code is None:
        if 400 <= http_status < 500:
            code = grpc.StatusCode.FAILED_PRECONDITION
        elif 500 <= http_status < 600:
            code = grpc.StatusCode.INTERNAL
        else:
            code = grpc.StatusCode.UNKNOWN
    number: int = code.value[0]
    return number, f"{code.name}({number}): HTTP status code {http_status}"
