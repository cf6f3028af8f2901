"""Credentials in Google's Secret Manager: one secret for each account, `outbox-account-{accountId}`, a JSON object of
names and values. The latest version counts.

A copy is kept for five minutes, because a worker asks for every message; a secret that was replaced is therefore in use
after five minutes at the latest, and at once after the provider has refused the old one. An account without a secret is
remembered for half a minute. When Secret Manager does not answer, a copy is good for an hour; after that the account's
messages wait.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions
from google.api_core.retry import AsyncRetry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.cloud import secretmanager_v1
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import (
    SecretManagerServiceGrpcAsyncIOTransport,
)

from firestore_outbox import log
from firestore_outbox.providers.credentials import (
    SECRETS_VARIABLE,
    CredentialResolver,
    Credentials,
    CredentialsUnavailable,
    LookupsExhausted,
    entries_in,
    is_usable,
)
from firestore_outbox.providers.lookups import Allowance

T = TypeVar("T")

PREFIX = "outbox-account-"
LONGEST_ID = 255
ANSWER_SECONDS = 3.0
FRESH_SECONDS = 300.0
MISSING_SECONDS = 30.0
STALE_SECONDS = 3600.0
PAUSE_SECONDS = 10.0
"""Between two questions that were not answered."""
MOST_KEPT = 10_000
"""Accounts with a secret."""
MOST_MISSING = 1_000
"""Names without one. Anybody can ask for any name."""
AT_ONCE = 16
"""Questions to Secret Manager at the same time."""
UNPROVEN_AT_ONCE = 4
"""Of those, for names that anonymous callers chose; no other question waits for them."""
QUIET_SECONDS = 60.0
"""Between two lines about a flood of unknown names."""

_PARENT = re.compile(r"projects/[a-z0-9:._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_AGAIN = AsyncRetry(
    predicate=if_exception_type(exceptions.ServiceUnavailable), initial=0.1, maximum=1.0, timeout=ANSWER_SECONDS
)


def secret_id(account_id: str) -> str:
    """Different for different accounts. Two underscores, which no accountId contains, begin what stands for a byte
    that a secret's id cannot have."""
    safe = "".join(_as_hex(letter) if not _PLAIN.fullmatch(letter) else letter for letter in account_id)
    if len(PREFIX) + len(safe) <= LONGEST_ID:
        return PREFIX + safe
    return f"{PREFIX}{safe[:100]}__{sha256(account_id.encode(errors='replace')).hexdigest()}"


def _as_hex(letter: str) -> str:
    return "".join(f"__{byte:02x}" for byte in letter.encode(errors="replace"))


class Secrets:
    """The few calls that are made, with the real client; what goes wrong is `CredentialsUnavailable`."""

    def __init__(self, parent: str, make: Callable[[], secretmanager_v1.SecretManagerServiceAsyncClient]) -> None:
        self.parent = parent
        self._make = make
        self._client: secretmanager_v1.SecretManagerServiceAsyncClient | None = None

    async def latest(self, account_id: str) -> str | None:
        """None: there is none, or it is disabled."""
        name = f"{self.parent}/secrets/{secret_id(account_id)}/versions/latest"
        try:
            answer = await self._call(lambda client, options: client.access_secret_version(name=name, **options))
        except (exceptions.NotFound, exceptions.FailedPrecondition):
            return None
        try:
            text: str = answer.payload.data.decode()
        except UnicodeDecodeError:
            raise CredentialsUnavailable(f"{name} is not text") from None
        return text

    async def add(self, account_id: str, text: str) -> str:
        """A new version, of a new secret where there is none. Its name."""
        identity = secret_id(account_id)
        automatic = secretmanager_v1.Replication(automatic=secretmanager_v1.Replication.Automatic())
        secret = secretmanager_v1.Secret(replication=automatic, labels={"app": "outbox"})
        request = secretmanager_v1.CreateSecretRequest(parent=self.parent, secret_id=identity, secret=secret)
        try:
            await self._call(lambda client, options: client.create_secret(request=request, **options))
        except exceptions.AlreadyExists:
            pass
        except exceptions.NotFound:
            raise CredentialsUnavailable(f"there is no {self.parent}: see {SECRETS_VARIABLE}") from None
        name = f"{self.parent}/secrets/{identity}"
        payload = secretmanager_v1.SecretPayload(data=text.encode())
        version = await self._call(
            lambda client, options: client.add_secret_version(parent=name, payload=payload, **options)
        )
        return str(version.name)

    async def _call(self, call: Callable[[Any, Mapping[str, Any]], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if self._client is None:  # made by the first call: its channel belongs to the loop that runs then
                    self._client = self._make()
                return await call(self._client, {"retry": _AGAIN, "timeout": ANSWER_SECONDS})
        except (exceptions.NotFound, exceptions.FailedPrecondition, exceptions.AlreadyExists):
            raise
        except exceptions.PermissionDenied:
            raise CredentialsUnavailable(
                f"Secret Manager refuses: this process needs roles/secretmanager.secretAccessor on {self.parent} "
                "(to write, roles/secretmanager.admin)"
            ) from None
        except (exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError, TimeoutError) as error:
            raise CredentialsUnavailable(f"Secret Manager does not answer ({type(error).__name__})") from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.transport.close()


def connect(parent: str, host: str = "") -> Secrets:
    """`parent` is projects/PROJECT; `host` is where it is served, if not at Google's."""
    if not _PARENT.fullmatch(parent):
        raise CredentialsUnavailable(f"{SECRETS_VARIABLE} must be projects/PROJECT")

    def make() -> secretmanager_v1.SecretManagerServiceAsyncClient:
        if not host:
            return secretmanager_v1.SecretManagerServiceAsyncClient()
        transport = SecretManagerServiceGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(host))
        return secretmanager_v1.SecretManagerServiceAsyncClient(transport=transport)

    return Secrets(parent, make)


@dataclass(frozen=True, slots=True)
class _Copy:
    credentials: Credentials
    fetched_at: float
    good_until: float


class SecretManagerCredentials(CredentialResolver):
    """Copies of secrets and the names that have none are kept apart: made-up names never push a copy out.

    A name that an anonymous caller chose is looked up from an allowance, in places of its own. The name of an account
    whose copy is here needs none, also if the copy has to be fetched again.
    """

    def __init__(self, secrets: Secrets, clock: Callable[[], float] = time.monotonic) -> None:
        self._secrets = secrets
        self._clock = clock
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._missing: OrderedDict[str, float] = OrderedDict()
        """Names without a secret, and until when that is believed."""
        self._under_way: dict[str, asyncio.Task[Credentials]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._slots_for_unproven = asyncio.Semaphore(UNPROVEN_AT_ONCE)
        self._allowance = Allowance(at=clock())
        self._quiet_until = clock()

    async def resolve(self, account_id: str) -> Credentials:
        return await self._resolve(account_id, self._slots)

    async def resolve_unproven(self, account_id: str) -> Credentials:
        if account_id in self._copies or account_id in self._under_way or self._is_missing(account_id):
            return await self._resolve(account_id, self._slots)
        allowance = self._allowance.taken(self._clock())
        if allowance is None:
            self._log_exhausted()
            raise LookupsExhausted("too many unknown accounts were asked for")
        self._allowance = allowance
        credentials = await self._resolve(account_id, self._slots_for_unproven)
        if credentials.names:
            self._allowance = self._allowance.given_back()
        return credentials

    def refused(self, account_id: str) -> None:
        copy = self._copies.get(account_id)
        if copy is not None:
            self._keep(account_id, copy.credentials, copy.fetched_at, good_for=0)

    async def close(self) -> None:
        for fetch in list(self._under_way.values()):
            fetch.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        await self._secrets.close()

    async def _resolve(self, account_id: str, slots: asyncio.Semaphore) -> Credentials:
        copy = self._copies.get(account_id)
        if copy is not None and self._clock() < copy.good_until:
            self._copies.move_to_end(account_id)
            return copy.credentials
        if copy is None and self._is_missing(account_id):
            return Credentials()
        fetch = self._under_way.get(account_id)
        if fetch is None:
            fetch = self._under_way[account_id] = asyncio.create_task(self._fetch(account_id, slots))
            fetch.add_done_callback(lambda task: self._ended(account_id, task))
        return await asyncio.shield(fetch)

    def _ended(self, account_id: str, fetch: asyncio.Task[Credentials]) -> None:
        del self._under_way[account_id]
        if not fetch.cancelled():
            fetch.exception()  # the callers that still wait have it; asyncio must not report it as lost

    async def _fetch(self, account_id: str, slots: asyncio.Semaphore) -> Credentials:
        try:
            async with slots:
                text = await self._secrets.latest(account_id)
        except CredentialsUnavailable as error:
            return self._stale(account_id, error)
        if text is None:
            return self._note_missing(account_id)
        return self._keep(account_id, _credentials(account_id, text), self._clock(), good_for=FRESH_SECONDS)

    def _stale(self, account_id: str, error: CredentialsUnavailable) -> Credentials:
        copy = self._copies.get(account_id)
        if copy is None or self._clock() - copy.fetched_at > STALE_SECONDS:
            raise error
        log.credentials_stale(account_id, error)
        return self._keep(account_id, copy.credentials, copy.fetched_at, good_for=PAUSE_SECONDS)

    def _keep(self, account_id: str, credentials: Credentials, fetched_at: float, *, good_for: float) -> Credentials:
        self._missing.pop(account_id, None)
        self._copies[account_id] = _Copy(credentials, fetched_at, self._clock() + good_for)
        self._copies.move_to_end(account_id)
        while len(self._copies) > MOST_KEPT:
            self._copies.popitem(last=False)
        return credentials

    def _is_missing(self, account_id: str) -> bool:
        return self._clock() < self._missing.get(account_id, 0.0)

    def _note_missing(self, account_id: str) -> Credentials:
        self._copies.pop(account_id, None)
        self._missing[account_id] = self._clock() + MISSING_SECONDS
        self._missing.move_to_end(account_id)
        while len(self._missing) > MOST_MISSING:
            self._missing.popitem(last=False)
        return Credentials()

    def _log_exhausted(self) -> None:
        if self._clock() >= self._quiet_until:
            self._quiet_until = self._clock() + QUIET_SECONDS
            log.unknown_accounts_limited()


def _credentials(account_id: str, text: str) -> Credentials:
    where = f"the secret {secret_id(account_id)}"
    entries = entries_in(text, where)
    if not all(is_usable(secret) for secret in entries.values()):
        raise CredentialsUnavailable(f"{where} must be an object of printable strings")
    return Credentials(entries)
