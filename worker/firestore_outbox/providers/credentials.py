"""The secrets of an account: where they come from, and how they stay secret.

They live in Secret Manager (secret_manager.py), in a file or in the environment; never in Firestore, logs or errors. An
account without an entry has empty credentials, which its adapter answers with `AuthFailed`: no caller needs a branch
for it.

    OUTBOX_CREDENTIALS_FILE      a JSON file, {account: {name: secret}}, with "*" for everybody else
    OUTBOX_CREDENTIALS           the same as text
    OUTBOX_CREDENTIALS_SECRETS   projects/PROJECT: a secret for each account in Secret Manager

The first that is set counts: secrets on a laptop win over everything else that the shell knows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from firestore_outbox.errors import OutboxError

VARIABLE = "OUTBOX_CREDENTIALS"
FILE_VARIABLE = "OUTBOX_CREDENTIALS_FILE"
SECRETS_VARIABLE = "OUTBOX_CREDENTIALS_SECRETS"
SECRETS_HOST_VARIABLE = "OUTBOX_SECRETS_EMULATOR_HOST"
"""HOST:PORT of something that speaks Secret Manager's protocol; not set means Google's."""
EVERYBODY = "*"
"""The entry for accounts that have none of their own."""
WEBHOOK_SECRET = "webhookSecret"
NOTIFY_SECRET = "notifySecret"
"""Signs the notifications that the account's own webhook gets."""
WEBHOOK_SECRET_BEFORE = "webhookSecretBefore"
"""The secret that signed webhooks before a rotation. It is good beside the new one until the rotation is finished."""


class Credentials:
    """The secrets of one account, by name. `str`, `repr` and formatting show the names only."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = dict(secrets or {})

    def get(self, name: str) -> str | None:
        """None: the account has no such secret."""
        return self._secrets.get(name)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._secrets)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{name}=***' for name in sorted(self._secrets))})"


class CredentialsUnavailable(OutboxError):
    """The place where secrets are kept does not answer, or is unreadable. Says where, never what it holds."""


class LookupsExhausted(CredentialsUnavailable):
    """Callers asked for too many names that do not exist; this one is not looked up now. It may exist."""


class CredentialResolver(Protocol):
    """Those that keep nothing derive from it as they are."""

    async def resolve(self, account_id: str) -> Credentials:
        """Empty for an unknown account. Raises CredentialsUnavailable when it cannot know."""
        ...

    async def resolve_unproven(self, account_id: str) -> Credentials:
        """The same for a name that an anonymous caller chose. Raises LookupsExhausted where a lookup costs something
        and callers have asked for too many unknown names."""
        return await self.resolve(account_id)

    def refused(self, account_id: str) -> None:
        """The provider refused them: a resolver that keeps a copy looks again the next time, for they may have been
        replaced."""
        return

    async def close(self) -> None:
        return


class FixedCredentials(CredentialResolver):
    """Held in memory: `{account: {name: secret}}`, with "*" for everybody else."""

    def __init__(self, accounts: Mapping[str, Mapping[str, str]]) -> None:
        self._accounts = {account: Credentials(secrets) for account, secrets in accounts.items()}

    async def resolve(self, account_id: str) -> Credentials:
        return self._accounts.get(account_id) or self._accounts.get(EVERYBODY) or Credentials()

    def __repr__(self) -> str:
        return f"FixedCredentials({self._accounts!r})"


class FileCredentials(CredentialResolver):
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
    if path := environment.get(FILE_VARIABLE):
        return FileCredentials(Path(path))
    if text := environment.get(VARIABLE):
        return FixedCredentials(_parsed(text, VARIABLE))
    if parent := environment.get(SECRETS_VARIABLE):
        # Imported here: only production has it, and it costs half a second.
        from firestore_outbox.providers.secret_manager import SecretManagerCredentials, connect

        return SecretManagerCredentials(connect(parent, environment.get(SECRETS_HOST_VARIABLE, "")))
    return FixedCredentials({})


def entries_in(text: str, where: str) -> dict[str, Any]:
    """The JSON object in it. What is wrong with it is said without its own words: they quote the text."""
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise CredentialsUnavailable(f"{where} is not JSON") from None
    if not isinstance(content, dict):
        raise CredentialsUnavailable(f"{where} must be a JSON object")
    return content


def is_usable(secret: object) -> bool:
    """Secrets go into headers: a stray line break would make a request that cannot be sent."""
    return isinstance(secret, str) and secret.isascii() and secret.isprintable()


def _parsed(text: str, where: str) -> dict[str, dict[str, str]]:
    content = entries_in(text, where)
    for account, secrets in content.items():
        if not isinstance(secrets, dict) or not all(is_usable(secret) for secret in secrets.values()):
            raise CredentialsUnavailable(f"{where}: the entry of {account!r} must be an object of printable strings")
    return content
