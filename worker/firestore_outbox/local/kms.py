"""A stand-in for Cloud KMS on a laptop: `:encrypt` and `:decrypt` of symmetric keys, with Google's paths and bodies.

Keys are in one file that its owner alone may read, beside the rest of the stack's data. A key is made by the first
`:encrypt` that names it: on Google Cloud an operator makes it (docs/privacy.md).
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.sealing.kms import is_kms_key

NONCE_BYTES = 12


class KmsStandIn:
    def __init__(self, file: Path | None) -> None:
        """`file` keeps the keys; None keeps them in memory."""
        self._file = file
        self._keys: dict[str, str] = json.loads(file.read_text()) if file is not None and file.exists() else {}
        self.calls = 0

    def routes(self) -> list[Route]:
        return [Route("/v1/projects/{name:path}", self._call, methods=["POST"])]

    async def _call(self, request: Request) -> Response:
        self.calls += 1
        name, _, verb = f"projects/{request.path_params['name']}".rpartition(":")
        if not is_kms_key(name) or verb not in ("encrypt", "decrypt"):
            return _refused(404, "NOT_FOUND", "no such method")
        try:
            body = json.loads(await request.body())
            context = base64.b64decode(body.get("additionalAuthenticatedData", ""), validate=True)
            given = base64.b64decode(body["plaintext" if verb == "encrypt" else "ciphertext"], validate=True)
        except (ValueError, KeyError, TypeError, AttributeError):
            return _refused(400, "INVALID_ARGUMENT", "the body is malformed")
        return self._encrypt(name, given, context) if verb == "encrypt" else self._decrypt(name, given, context)

    def _encrypt(self, name: str, plaintext: bytes, context: bytes) -> Response:
        if name not in self._keys:
            self._keys[name] = base64.b64encode(AESGCM.generate_key(256)).decode()
            self._save()
        nonce = secrets.token_bytes(NONCE_BYTES)
        return _answer(ciphertext=nonce + self._cipher(name).encrypt(nonce, plaintext, context))

    def _decrypt(self, name: str, ciphertext: bytes, context: bytes) -> Response:
        if name not in self._keys:
            return _refused(404, "NOT_FOUND", f"CryptoKey {name} not found.")
        try:
            clear = self._cipher(name).decrypt(ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:], context)
        except (InvalidTag, ValueError):
            return _refused(400, "INVALID_ARGUMENT", "Decryption failed: the ciphertext is invalid.")
        return _answer(plaintext=clear)

    def _cipher(self, name: str) -> AESGCM:
        return AESGCM(base64.b64decode(self._keys[name]))

    def _save(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(self._keys, file)


def _answer(**raw: bytes) -> Response:
    return JSONResponse({name: base64.b64encode(value).decode() for name, value in raw.items()})


def _refused(code: int, status: str, message: str) -> Response:
    error: dict[str, Any] = {"code": code, "status": status, "message": message}
    return JSONResponse({"error": error}, status_code=code)
