"""The secrets of an account: where they come from, and that nobody ever sees them.

They live in the environment, in a file, or later in a secret manager; never in Firestore, logs or errors. An account
without an entry has empty credentials, which its adapter answers with `AuthFailed`: no caller needs a branch for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

VARIABLE = "OUTBOX_CREDENTIALS"
FILE_VARIABLE = "OUTBOX_CREDENTIALS_FILE"
EVERYBODY = "*"
"""The entry for accounts that have none of their own."""
WEBHOOK_SECRET = "webhookSecret"


class Credentials:
    """Named secrets. `str`, `repr` and formatting show the names only."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = dict(secrets or {})

    def get(self, name: str) -> str | None:
        return self._secrets.get(name)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{name}=***' for name in sorted(self._secrets))})"


class CredentialsUnavailable(Exception):
    """The place where secrets are kept does not answer, or is unreadable. Says where, never what it holds."""


class CredentialResolver(Protocol):
    async def resolve(self, account_id: str) -> Credentials:
        """Empty for an unknown account. Raises CredentialsUnavailable when it cannot know."""
        ...


class FixedCredentials:
    """Held in memory: `{account: {name: secret}}`, with "*" for everybody else."""

    def __init__(self, accounts: Mapping[str, Mapping[str, str]]) -> None:
        self._accounts = {account: Credentials(secrets) for account, secrets in accounts.items()}

    async def resolve(self, account_id: str) -> Credentials:
        return self._accounts.get(account_id) or self._accounts.get(EVERYBODY) or Credentials()

    def __repr__(self) -> str:
        return f"FixedCredentials({self._accounts!r})"


class FileCredentials:
    """A JSON file of the same form. It is read again when it changed, so that a secret can be replaced in place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: tuple[int, int, int] | None = None
        self._read = FixedCredentials({})

    async def resolve(self, account_id: str) -> Credentials:
        try:
            stat = self._path.stat()
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if version != self._version:
                self._read = FixedCredentials(_parsed(self._path.read_text(encoding="utf-8"), str(self._path)))
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsUnavailable(f"{self._path} cannot be read ({type(error).__name__})") from None
        return await self._read.resolve(account_id)


def credentials_from(environment: Mapping[str, str] = os.environ) -> CredentialResolver:
    """OUTBOX_CREDENTIALS_FILE names a file; OUTBOX_CREDENTIALS holds its content; the file wins."""
    if path := environment.get(FILE_VARIABLE):
        return FileCredentials(Path(path))
    if text := environment.get(VARIABLE):
        return FixedCredentials(_parsed(text, VARIABLE))
    return FixedCredentials({})


def _parsed(text: str, where: str) -> dict[str, dict[str, str]]:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        # Not the parser's own words, nor as the cause: they quote the text.
        raise CredentialsUnavailable(f"{where} is not JSON") from None
    if not isinstance(content, dict):
        raise CredentialsUnavailable(f"{where} must be an object of accounts")
    for account, secrets in content.items():
        if not isinstance(secrets, dict) or not all(_usable(secret) for secret in secrets.values()):
            raise CredentialsUnavailable(f"{where}: the entry of {account!r} must be an object of printable strings")
    return content


def _usable(secret: object) -> bool:
    """Secrets go into headers: a stray line break would make a request that nobody can send."""
    return isinstance(secret, str) and secret.isascii() and secret.isprintable()
