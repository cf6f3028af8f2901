"""One sealed part: a text or a template, encrypted to the account's public key with HPKE (RFC 9180).

The suite is DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, which every browser's WebCrypto has. The ciphertext is
base64url without padding of

    1 byte     the form, 1
    8 bytes    the beginning of SHA-256("account" 0 accountId)
    8 bytes    the beginning of SHA-256("message" 0 requestId)
    65 bytes   the encapsulated key
    the rest   the part as JSON, encrypted

HPKE's `info` binds it to the form, the account, the message, the key version and the place among the parts: a part
that is moved anywhere else does not open. RFC 9180 (section 8.1) names `info` for what a single encryption
authenticates. The two hashes only tell the reasons apart: without them a copied ciphertext looks like an altered one.

client/sealing.js writes and reads the same bytes. This module imports the standard library, `cryptography` and the
limits of messages: a backend that seals does not import the worker.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from firestore_outbox.errors import OutboxError
from firestore_outbox.messages.limits import is_key_version

SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
LABEL = b"firestore-outbox sealed part"
FORM = b"\x01"
HASH_BYTES = 8
HEADER_BYTES = 1 + 2 * HASH_BYTES
POINT_BYTES, SCALAR_BYTES, TAG_BYTES = 65, 32, 16
SEALABLE = frozenset({"text", "template"})
"""Types of parts that can be sealed. A file is stored as it is, so its caption goes as a text beside it."""

PrivateKey = EllipticCurvePrivateKey


class CannotSeal(OutboxError):
    """The account's public key is unusable. Nothing may be stored in its place."""


class Reason(StrEnum):
    """Why a part does not open. The value is the sentence that people see."""

    MALFORMED = "the ciphertext is not a sealed part"
    OTHER_ACCOUNT = "it was sealed for another account"
    OTHER_MESSAGE = "it was sealed for another message, and copied here"
    NO_SUCH_KEY = "the account has no key of this version"
    DELETED_KEY = "the key of this version was deleted"
    OTHER_VERSION = "it was sealed with another key version than it names"
    ALTERED = "the ciphertext was altered, or sealed with a key that the account never had"
    NOT_A_PART = "what was sealed is not a valid text or template"


class CannotOpen(OutboxError):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


# --- keys


def new_private_key() -> bytes:
    """32 bytes."""
    return generate_private_key(SECP256R1()).private_numbers().private_value.to_bytes(SCALAR_BYTES, "big")


def private_key_of(raw: bytes) -> PrivateKey:
    return derive_private_key(int.from_bytes(raw, "big"), SECP256R1())


def public_key_of(raw: bytes) -> str:
    """As the account's document has it: an uncompressed point, in base64url."""
    point = private_key_of(raw).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return encoded(point)


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Raises ValueError."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("it is not base64url") from error
    if encoded(raw) != text:  # the last character has bits to spare: one ciphertext has one spelling
        raise ValueError("it is not base64url")
    return raw


# --- seal


def seal_parts(
    parts: Sequence[Mapping[str, Any]], *, account_id: str, request_id: str, key: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The same parts with each text and each template sealed, to send in their place. `key` is the field `sealing` of
    the account's document. Other parts stay as they are."""
    version, point = key.get("keyVersion"), key.get("publicKey")
    if not is_key_version(version) or not isinstance(version, int) or not isinstance(point, str):
        raise CannotSeal(f"accounts/{account_id}: `sealing` has no usable key; see `outbox keys list {account_id}`")
    try:
        public = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), decoded(point))
    except ValueError:
        raise CannotSeal(f"accounts/{account_id}: `sealing.publicKey` is no point of P-256 in base64url") from None
    sealed: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        if part.get("type") not in SEALABLE:
            sealed.append(dict(part))
            continue
        header = header_of(account_id, request_id)
        clear = json.dumps(dict(part), ensure_ascii=False, separators=(",", ":")).encode()
        body = SUITE.encrypt(clear, public, binding(header, account_id, request_id, version, index))
        sealed.append({"type": "sealed", "keyVersion": version, "ciphertext": encoded(header + body)})
    return sealed


def header_of(account_id: str, request_id: str) -> bytes:
    return FORM + _hash(b"account", account_id) + _hash(b"message", request_id)


def _hash(what: bytes, name: str) -> bytes:
    return sha256(what + b"\0" + name.encode()).digest()[:HASH_BYTES]


def binding(header: bytes, account_id: str, request_id: str, version: int, index: int) -> bytes:
    """HPKE's `info`. Each entry follows its length, so that no two lists of entries give the same bytes."""
    entries = (LABEL, header, account_id.encode(), request_id.encode(), str(version).encode(), str(index).encode())
    return b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)


# --- open


def checked_envelope(ciphertext: str, account_id: str, request_id: str) -> bytes:
    """The bytes, if they say that they belong here. Needs no key. Raises CannotOpen."""
    try:
        raw = decoded(ciphertext)
    except ValueError:
        raise CannotOpen(Reason.MALFORMED) from None
    if raw[:1] != FORM or len(raw) < HEADER_BYTES + POINT_BYTES + TAG_BYTES:
        raise CannotOpen(Reason.MALFORMED)
    expected = header_of(account_id, request_id)
    if raw[: 1 + HASH_BYTES] != expected[: 1 + HASH_BYTES]:
        raise CannotOpen(Reason.OTHER_ACCOUNT)
    if raw[:HEADER_BYTES] != expected:
        raise CannotOpen(Reason.OTHER_MESSAGE)
    return raw


def opened(raw: bytes, private: PrivateKey, *, account_id: str, request_id: str, version: int, index: int) -> Any:
    """What was sealed, as JSON says it. `raw` comes from `checked_envelope`. Raises CannotOpen."""
    header = raw[:HEADER_BYTES]
    try:
        clear = SUITE.decrypt(raw[HEADER_BYTES:], private, binding(header, account_id, request_id, version, index))
    except InvalidTag:
        raise CannotOpen(Reason.ALTERED) from None
    try:
        return json.loads(clear)
    except (ValueError, RecursionError):
        raise CannotOpen(Reason.NOT_A_PART) from None
