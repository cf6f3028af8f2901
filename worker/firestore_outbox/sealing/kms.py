"""Cloud KMS by its REST API: `encrypt` and `decrypt` of a symmetric key, with additional authenticated data.

Two calls of a stable API do not need a client library of their own: importing google-cloud-kms would cost each function
instance its start, also where nothing is sealed. On a laptop a stand-in serves the same two calls (local/kms.py).
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from typing import Any

import httpx

from firestore_outbox.firestore.access_token import AccessToken
from firestore_outbox.sealing.release import KeyDestroyed, KeyRelease, KeyUnavailable

GOOGLE = "https://cloudkms.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/cloudkms"
ANSWER_SECONDS = 3.0
TRIES = 2
"""A second try for a lost connection or a 5xx; after it the message waits."""

_KEY_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")


def is_kms_key(name: str) -> bool:
    return _KEY_NAME.fullmatch(name) is not None


class Kms(KeyRelease):
    def __init__(self, emulator_host: str = "", transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`emulator_host` is HOST:PORT of a stand-in; empty means Google's, with the credentials at hand."""
        self._base = f"http://{emulator_host}" if emulator_host else GOOGLE
        self._needs_token = not emulator_host
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._access_token = AccessToken(SCOPE)

    async def wrap(self, kms_key: str, private_key: bytes, context: bytes) -> str:
        body = {"plaintext": _encoded(private_key), "additionalAuthenticatedData": _encoded(context)}
        return str((await self._call(kms_key, "encrypt", body))["ciphertext"])

    async def unwrap(self, kms_key: str, wrapped: str, context: bytes) -> bytes:
        body = {"ciphertext": wrapped, "additionalAuthenticatedData": _encoded(context)}
        return base64.b64decode((await self._call(kms_key, "decrypt", body))["plaintext"])

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _call(self, kms_key: str, verb: str, body: Mapping[str, str]) -> dict[str, Any]:
        if not is_kms_key(kms_key):
            raise KeyUnavailable(f"{kms_key[:80]!r} is no name of a Cloud KMS key")
        if self._http is None:  # made by the first call: its TLS context costs time that most processes never need
            self._http = httpx.AsyncClient(transport=self._transport, trust_env=False, timeout=ANSWER_SECONDS)
        for left in reversed(range(TRIES)):
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    headers = {"authorization": f"Bearer {await self._token()}"} if self._needs_token else {}
                    answer = await self._http.post(f"{self._base}/v1/{kms_key}:{verb}", json=body, headers=headers)
            except (httpx.HTTPError, TimeoutError) as error:
                if left:
                    continue
                raise KeyUnavailable(f"Cloud KMS does not answer ({type(error).__name__})") from None
            if answer.is_success:
                return _content(answer)
            if answer.status_code < 500 or not left:
                raise _refusal(answer, kms_key)
        raise AssertionError("the last try returns or raises")

    async def _token(self) -> str:
        from google.auth.exceptions import GoogleAuthError

        try:
            return await self._access_token()
        except GoogleAuthError as error:
            raise KeyUnavailable(f"no credentials for Cloud KMS ({type(error).__name__})") from None


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _content(answer: httpx.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise KeyUnavailable("Cloud KMS answered with something that is no JSON object")
    return content


def _refusal(answer: httpx.Response, kms_key: str) -> KeyUnavailable | KeyDestroyed:
    """400: it was not wrapped by this key, or not for this account. 404: there is no such key. The state of a key in
    KMS is FAILED_PRECONDITION, also 400: disabled keys can be enabled again, so that one is unavailable."""
    content = _content(answer) if answer.headers.get("content-type", "").startswith("application/json") else {}
    error = content.get("error")
    status = error.get("status") if isinstance(error, dict) else None
    if answer.status_code == 400 and status == "INVALID_ARGUMENT":
        return KeyDestroyed("Cloud KMS cannot unwrap it")
    return KeyUnavailable(f"Cloud KMS refuses {kms_key} (status {answer.status_code} {status or ''})".strip())
