"""Firebase's tokens, and Google's certificates for them on this machine, so that firebase-admin itself can be tested.

firebase-admin fetches certificates from an address that is fixed in it. Nothing of it is patched here: the process is
told of an HTTPS proxy and of an authority to trust, as a company's network would tell it, and behind the proxy
`www.googleapis.com` is ours. What is between the token and the answer is then the library as it is in production.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

PROJECT = "demo-outbox"
GOOGLE = "www.googleapis.com"
CERTIFICATES_PATH = "/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
HOST = "127.0.0.1"


def now() -> datetime:
    return datetime.now(UTC)


def ago(**of: float) -> int:
    return int((now() - timedelta(**of)).timestamp())


# --- tokens


@cache
def signing_key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def claims_of(uid: str, **changes: Any) -> dict[str, Any]:
    """As Firebase makes them; `changes` are claims, and None takes one away."""
    claims = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": uid,
        "user_id": uid,
        "auth_time": ago(minutes=5),
        "iat": ago(seconds=5),
        "exp": ago(hours=-1),
        "firebase": {"identities": {}, "sign_in_provider": "password"},
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not None}


def id_token(uid: str, *, key: str = "google", kid: str | None = None, **changes: Any) -> str:
    headers = {"kid": key if kid is None else kid}
    return jwt.encode(claims_of(uid, **changes), signing_key(key), algorithm="RS256", headers=headers)


def unsigned_token(uid: str, *, kid: str | None = None, **changes: Any) -> str:
    """As the Firebase emulators make them."""
    return jwt.encode(claims_of(uid, **changes), "", algorithm="none", headers={"kid": kid} if kid else None)


def certificate(
    name: str, key: rsa.RSAPrivateKey, *, signed_by: rsa.RSAPrivateKey, issuer: str, is_authority: bool = False
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - timedelta(days=1))
        .not_valid_after(now() + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_by.public_key()),
            critical=False,
        )
    )
    return builder.sign(signed_by, hashes.SHA256())


def pem(what: x509.Certificate) -> bytes:
    return what.public_bytes(serialization.Encoding.PEM)


# --- Google, behind a proxy


@dataclass
class Google:
    """What `www.googleapis.com` says of Firebase's keys."""

    keys: list[str] = field(default_factory=lambda: ["google"])
    max_age_seconds: int = 3600
    is_down: bool = False
    fetches: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """What a process needs to find this in place of the real one."""

    def body(self) -> bytes:
        found = {}
        for name in self.keys:
            key = signing_key(name)
            found[name] = pem(certificate(name, key, signed_by=key, issuer=name)).decode()
        return json.dumps(found).encode()

    def answer(self, path: str) -> bytes:
        self.fetches += 1
        status, body = ("200 OK", self.body()) if path == CERTIFICATES_PATH else ("404 Not Found", b"")
        if self.is_down:
            status, body = "503 Service Unavailable", b""
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Date: {format_datetime(now(), usegmt=True)}\r\n"
            f"Cache-Control: public, max-age={self.max_age_seconds}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body


@asynccontextmanager
async def google(directory: Path) -> AsyncIterator[Google]:
    """Served for as long as the context lasts; the directory keeps the authority that must be trusted."""
    it = Google()
    authority, tls = signing_key("authority"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted = directory / "authority.pem"
    trusted.write_bytes(
        pem(certificate("authority", authority, signed_by=authority, issuer="authority", is_authority=True))
    )
    served, key = directory / "google.pem", signing_key(GOOGLE)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    served.write_bytes(private + pem(certificate(GOOGLE, key, signed_by=authority, issuer="authority")))
    tls.load_cert_chain(served)

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            request = await reader.readuntil(b"\r\n\r\n")
            if not request.startswith(f"CONNECT {GOOGLE}:443 ".encode()):
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.start_tls(tls)
                line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
                writer.write(it.answer(line.split(b" ")[1].decode()))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, HOST, 0)
    address = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    it.environment = {
        "https_proxy": address,
        "HTTPS_PROXY": address,
        "no_proxy": HOST,
        "NO_PROXY": HOST,
        "REQUESTS_CA_BUNDLE": str(trusted),
    }
    try:
        yield it
    finally:
        server.close()
