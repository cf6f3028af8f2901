"""Firebase Cloud Messaging by its HTTP v1 API: one call, which sends one notification to one device.

One call of a stable API does not need firebase-admin: its messaging module blocks a thread for each call, cannot call a
stand-in, and costs an instance its start. On a laptop a stand-in serves the same call (local/simulators/fcm.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from firestore_outbox.firestore.access_token import AccessToken
from firestore_outbox.notifications.webhook import LIMIT, Accepted, NotAccepted

GOOGLE = "https://fcm.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GONE = frozenset({"UNREGISTERED", "SENDER_ID_MISMATCH"})
"""Error codes of a token that no later call can reach: the app was removed, or it is one of another project."""
HOPELESS = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class Gone:
    """No call can reach the device any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The same call is refused at every attempt."""

    reason: str


Sent = Accepted | NotAccepted | Gone | Refused


class Fcm:
    def __init__(
        self, project: str, emulator_host: str = "", transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """`emulator_host` is HOST:PORT of a stand-in; empty means Google's, with the credentials at hand."""
        base = f"http://{emulator_host}" if emulator_host else GOOGLE
        self._url = f"{base}/v1/projects/{project}/messages:send"
        self._access_token = None if emulator_host else AccessToken(SCOPE)
        self._transport = transport
        self._http: httpx.AsyncClient | None = None

    async def send(self, message: Mapping[str, Any]) -> Sent:
        """Send a message, as `fcm_message` makes it."""
        from google.auth.exceptions import GoogleAuthError

        if self._http is None:  # made by the first call: its TLS context costs time that most processes never need
            self._http = httpx.AsyncClient(
                transport=self._transport, trust_env=False, timeout=LIMIT.total_seconds(), follow_redirects=False
            )
        try:
            async with asyncio.timeout(LIMIT.total_seconds()):
                token = None if self._access_token is None else await self._access_token()
                headers = {} if token is None else {"authorization": f"Bearer {token}"}
                answer = await self._http.post(self._url, json={"message": message}, headers=headers)
        except GoogleAuthError as error:
            return NotAccepted(f"no credentials for Firebase Cloud Messaging ({type(error).__name__})")
        except (httpx.HTTPError, TimeoutError) as error:
            return NotAccepted(f"Firebase Cloud Messaging did not answer ({type(error).__name__})")
        return Accepted() if answer.is_success else _refusal(answer)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()


def _refusal(answer: httpx.Response) -> Sent:
    code = _error_code(answer)
    reason = f"Firebase Cloud Messaging answered {answer.status_code} {code}".strip()
    if code in GONE:
        return Gone(reason)
    return Refused(reason) if code == HOPELESS else NotAccepted(reason)


def _error_code(answer: httpx.Response) -> str:
    """FCM's own code, which tells a token that is gone from a project that is not found; else the status's name."""
    try:
        error = answer.json()["error"]
        codes = [str(one["errorCode"]) for one in error.get("details", []) if "errorCode" in one]
        return codes[0] if codes else str(error.get("status", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
