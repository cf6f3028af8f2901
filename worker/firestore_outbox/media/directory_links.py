"""Addresses of a directory's files that end, signed with a key that lies in the directory itself."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlencode

KEY_FILE = "%key"
_KEY_BYTES = 32


def signed_link(directory: Path, base: str, names: tuple[str, str], *, now: datetime, lasts: timedelta) -> str:
    until = str(int((now + lasts).timestamp()))
    path = "/".join(quote(name, safe="") for name in names)
    return f"{base}/{path}?{urlencode({'until': until, 'signature': _signature(directory, names, until)})}"


def is_good(directory: Path, names: tuple[str, str], *, until: str, signature: str, now: datetime) -> bool:
    is_signed = hmac.compare_digest(_signature(directory, names, until).encode(), signature.encode())
    return is_signed and now.timestamp() <= int(until)


def _signature(directory: Path, names: tuple[str, str], until: str) -> str:
    text = "\n".join((*(quote(name, safe="") for name in names), until))
    return hmac.new(_key(directory), text.encode(), hashlib.sha256).hexdigest()


def _key(directory: Path) -> bytes:
    """Made by the first process that needs one; every other process reads it."""
    file = directory / KEY_FILE
    directory.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        new = directory / f"{KEY_FILE}-{secrets.token_hex(8)}"
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
            opened.write(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(new, file)
        new.unlink()
    return file.read_bytes()
