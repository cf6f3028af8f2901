"""An HTTP answer read with care: what every adapter does the same way, whatever its provider's codes mean."""

from __future__ import annotations

import json
from typing import Any

import httpx

from firestore_outbox.providers.http import retry_after
from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, Outcome, Rejected, Scope, Throttled, Unknown

LONGEST_DETAIL = 200
"""Of a provider's own words. Enough to tell what happened; some providers quote the whole request."""


def json_object(response: httpx.Response) -> dict[str, Any]:
    """The body, if it is a JSON object; otherwise an empty one."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def text_of(fields: dict[str, Any], name: str) -> str:
    """A field that should be a text, cut short; empty if it is anything else."""
    value = fields.get(name)
    return value[:LONGEST_DETAIL] if isinstance(value, str) else ""


def by_status(response: httpx.Response, detail: str) -> Outcome:
    """For a refusal without a code that we know: whatever cannot be proved to be unprocessed is `Unknown`."""
    match response.status_code:
        case 429:
            return Throttled(scope=Scope.ACCOUNT, detail=detail, retry_after=retry_after(response.headers))
        case 401 | 403:
            return AuthFailed(detail=detail)
        case 408 | 409 | 425 | 499:  # a request that timed out or met another one may have been processed
            return Unknown(detail=detail)
        case status if 400 <= status < 500:
            return Rejected(code=ErrorCode.REJECTED, detail=detail)
        case _:
            return Unknown(detail=detail)
