"""Tokens as Google's service accounts carry them, signed by a key of this machine.

The key is made when it is first needed. With a data directory it is kept there, so tokens and a worker's
cached certificates stay valid over a restart; without one it lives as long as the process. The issuer is
Google's by default: a worker then checks the same claims as in production and only fetches its certificates
from here.
"""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import crypt, jwt

from firestore_emulator.tasks.times import Clock

GOOGLE_ISSUER = "https://accounts.google.com"
LIFETIME = timedelta(hours=1)
REUSED_FOR = timedelta(minutes=30)
"""A token is handed out again for this long: signing costs about a millisecond, and workers cannot tell."""
_KEPT_TOKENS = 1024


class TokenIssuer:
    def __init__(self, clock: Clock, *, issuer: str = GOOGLE_ISSUER, key_file: Path | None = None) -> None:
        self.issuer = issuer
        self._clock = clock
        self._key_file = key_file
        self._kept: dict[tuple[str, str], tuple[datetime, str]] = {}

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        if self._key_file is not None and self._key_file.exists():
            key = serialization.load_pem_private_key(self._key_file.read_bytes(), None)
            if isinstance(key, rsa.RSAPrivateKey):
                return key
            raise ValueError(f"{self._key_file} holds no RSA key")
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        if self._key_file is not None:
            _write_secret(self._key_file, made)
        return made

    @cached_property
    def key_id(self) -> str:
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(public).hexdigest()[:40]

    @cached_property
    def _signer(self) -> Any:
        return crypt.RSASigner.from_string(_pem(self._key), self.key_id)

    def jwks(self) -> dict[str, Any]:
        """The public key as RFC 7517 writes it."""
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "n": _base64(public.n), "e": _base64(public.e)}
        return {"keys": [{**key, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}

    def id_token(self, email: str, audience: str) -> str:
        now = self._clock()
        kept = self._kept.get((email, audience))
        if kept is not None and timedelta(0) <= now - kept[0] < REUSED_FOR:
            return kept[1]
        claims = {
            "iss": self.issuer,
            "aud": audience,
            "azp": _account_number(email),
            "sub": _account_number(email),
            "email": email,
            "email_verified": True,
            "iat": int(now.timestamp()),
            "exp": int((now + LIFETIME).timestamp()),
        }
        token: str = jwt.encode(self._signer, claims).decode()
        if len(self._kept) >= _KEPT_TOKENS:
            self._kept.clear()
        self._kept[email, audience] = (now, token)
        return token

    def access_token(self, email: str) -> str:
        """An OAuth token is opaque to everybody but Google, so this one stands for its account and nothing
        more.
        """
        return f"emulated-access-token-{_account_number(email)}"


def _account_number(email: str) -> str:
    """Service accounts have a number of 21 digits; one that depends on nothing but the address will do."""
    return f"1{int.from_bytes(hashlib.sha256(email.encode()).digest()) % 10**20:020d}"


def _base64(number: int) -> str:
    """A positive number as it stands in a JSON Web Key: big-endian, URL-safe, without padding."""
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8)).rstrip(b"=").decode()


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_secret(path: Path, key: rsa.RSAPrivateKey) -> None:
    """Whole or not at all, and readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(_pem(key))
    part.replace(path)
