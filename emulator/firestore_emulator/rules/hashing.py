"""The functions of `hashing`, each over a string's UTF-8 bytes or over bytes."""

from __future__ import annotations

import hashlib
import zlib

from firestore_emulator.rules import text
from firestore_emulator.rules.values import Value


def md5(data: Value) -> bytes:
    return hashlib.md5(_bytes(data), usedforsecurity=False).digest()


def sha256(data: Value) -> bytes:
    return hashlib.sha256(_bytes(data)).digest()


def crc32(data: Value) -> bytes:
    return zlib.crc32(_bytes(data)).to_bytes(4, "little")


def crc32c(data: Value) -> bytes:
    crc = 0xFFFFFFFF
    for byte in _bytes(data):
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def _bytes(value: Value) -> bytes:
    return text.utf8(value) if type(value) is str else value


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901 - the usual construction
        table.append(byte)
    return table


_CRC32C = _crc32c_table()
