"""All providers by name, with the credentials of the accounts: what the rest of the program talks to.

An unknown name is a provider too, one that refuses everything: a mistyped account is parked like one with a
wrong password, its messages stay queued, and no caller needs a branch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeVar, assert_never

from firestore_outbox import log
from firestore_outbox.errors import Unavailable
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.credentials import (
    WEBHOOK_SECRET,
    WEBHOOK_SECRET_BEFORE,
    CredentialResolver,
    Credentials,
    CredentialsUnavailable,
    LookupsExhausted,
)
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.json_depth import is_too_deep
from firestore_outbox.providers.opening import KEY_TOO_SLOW, RETRY_AFTER, NoKeys, Opener, is_sealed
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Postponed,
    Rejected,
    Unknown,
)
from firestore_outbox.providers.protocol import (
    Checked,
    ContactsPage,
    InboundFile,
    PairingCode,
    Provider,
    SessionState,
    Unrecognised,
    WebhookEvent,
)
from firestore_outbox.providers.reading import fault_in
from firestore_outbox.providers.servers import server_of
from firestore_outbox.providers.unconfigured import Unconfigured

T = TypeVar("T")

MAX_WEBHOOK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A genuine webhook and everything in it."""

    events: tuple[WebhookEvent, ...]
    number: str | None = None
    """The number of the account in the webhook's path, by its credentials; None where the provider names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not signed, not lately, or not by this provider: nothing of it was read, and nothing may be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryLater:
    """It cannot be told whether it is genuine, because the secrets are out of reach. The provider sends it again."""


class Providers:
    def __init__(
        self,
        adapters: Iterable[Provider],
        credentials: CredentialResolver,
        http: Http,
        opener: Opener | None = None,
    ) -> None:
        """`opener` opens sealed messages; None: they wait for a worker that can."""
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._credentials = credentials
        self._http = http
        self._opener = opener or NoKeys()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._adapters))

    def __getitem__(self, name: str) -> Provider:
        return self._adapters.get(name) or Unconfigured(name)

    async def send(self, name: str, message: OutboxMessage, *, limit: timedelta) -> Outcome:
        """Never raises for a provider's or a secret's sake, and never takes longer than `limit`."""
        clock = asyncio.get_running_loop().time
        ends = clock() + limit.total_seconds()
        message = message.as_sent
        try:
            async with asyncio.timeout(limit.total_seconds() / 4):
                credentials = await self._credentials.resolve(message.account_id)
        except (CredentialsUnavailable, TimeoutError) as error:
            log.credentials_unavailable(message.account_id, error)
            return NotConnected(detail="the account's credentials cannot be read at the moment")
        if is_sealed(message):
            try:
                async with asyncio.timeout(limit.total_seconds() / 4):
                    opened = await self._opener.open_message(message)
            except TimeoutError:
                return Postponed(code=ErrorCode.CANNOT_OPEN, detail=KEY_TOO_SLOW, retry_after=RETRY_AFTER)
            if not isinstance(opened, OutboxMessage):
                return opened
            message = opened
        outcome = await self[name].send(message, credentials, limit=timedelta(seconds=ends - clock()))
        if isinstance(outcome, AuthFailed):
            self._credentials.refused(message.account_id)
        return outcome

    async def admit(
        self, name: str, account_id: str, headers: Mapping[str, str], *, now: datetime
    ) -> Refused | TryLater | None:
        """Whether a webhook's body is worth reading: a provider of ours, a signature of its form, and an account with
        a secret to check it by. None admits it; what it holds is proven by `receive`."""
        if name not in self._adapters or not _looks_signed(self[name], headers, now=now):
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        return None if credentials.get(WEBHOOK_SECRET) else Refused()

    async def _of_caller(self, account_id: str) -> Credentials | TryLater:
        """For a name that a caller chose who has proven nothing yet."""
        try:
            return await self._credentials.resolve_unproven(account_id)
        except LookupsExhausted:  # the resolver logs it once a minute: a flood of calls must not be a flood of lines
            return TryLater()
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            return TryLater()

    async def receive(
        self, name: str, account_id: str, headers: Mapping[str, str], raw_body: bytes, *, now: datetime
    ) -> Received | Refused | TryLater:
        """Verify, then parse. The account is the one of the webhook's path, and its secret must have signed."""
        signed = await self.signed_by(name, account_id, headers, raw_body, now=now)
        if not isinstance(signed, Credentials):
            return signed
        if is_too_deep(raw_body):
            return Received(events=(Unrecognised(detail="the body is nested too deeply, or not JSON"),))
        provider = self[name]
        return Received(events=_parsed(provider, raw_body), number=provider.number_of(account_id, signed))

    async def signed_by(
        self, name: str, account_id: str, headers: Mapping[str, str], raw_body: bytes, *, now: datetime
    ) -> Credentials | Refused | TryLater:
        """The account's credentials, if its own secret signed this body."""
        if len(raw_body) > MAX_WEBHOOK_BYTES or name not in self._adapters:
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        for secret in (credentials.get(WEBHOOK_SECRET), credentials.get(WEBHOOK_SECRET_BEFORE)):
            if secret and _is_genuine(self[name], headers, raw_body, secret, now=now):
                return credentials
        return Refused()

    async def handshake(self, name: str, account_id: str, query: Mapping[str, str]) -> str | Refused | TryLater:
        if name not in self._adapters or not self[name].asks_handshake(query):
            return Refused()
        credentials = await self._of_caller(account_id)
        if isinstance(credentials, TryLater):
            return credentials
        challenge = self[name].handshake(query, credentials)
        return Refused() if challenge is None else challenge

    async def session(
        self, name: str, account_id: str, order: Literal["state", "start", "stop"], *, limit: timedelta
    ) -> SessionState | Outcome:
        """Asks for the account's session, or orders it up or down. Never raises, and keeps to `limit`."""
        sessions = self[name].sessions
        if sessions is None:
            return AuthFailed(detail=f"the provider {name[:60]!r} has no sessions to look after")

        async def ask(credentials: Credentials) -> SessionState | Outcome:
            match order:
                case "state":
                    return await sessions.state(account_id, credentials, limit=limit)
                case "start":
                    return await sessions.start(account_id, credentials, limit=limit)
                case "stop":
                    return await sessions.stop(account_id, credentials, limit=limit)
                case _:
                    assert_never(order)

        return await self._asked(account_id, ask, limit)

    async def pair(
        self, name: str, account_id: str, order: Literal["create", "code", "logout"], *, webhook: str, limit: timedelta
    ) -> PairingCode | SessionState | Outcome:
        """Links the account's phone, or unlinks it. `webhook` is where the session's events go. Never raises, and keeps
        to `limit`."""
        pairing = self[name].pairing
        if pairing is None:
            return AuthFailed(detail=f"the provider {name[:60]!r} has no phone to link")

        async def ask(credentials: Credentials) -> PairingCode | SessionState | Outcome:
            match order:
                case "create":
                    return await pairing.create(account_id, credentials, webhook=webhook, limit=limit)
                case "code":
                    return await pairing.code(account_id, credentials, limit=limit)
                case "logout":
                    return await pairing.logout(account_id, credentials, limit=limit)
                case _:
                    assert_never(order)

        return await self._asked(account_id, ask, limit)

    async def contacts(self, name: str, account_id: str, *, offset: int, limit: timedelta) -> ContactsPage | Outcome:
        """A page of the account's contacts; an empty one if the provider tells none. Never raises, and keeps to
        `limit`."""
        contacts = self[name].contacts
        if contacts is None:
            return ContactsPage(contacts=(), next_offset=None)

        async def ask(credentials: Credentials) -> ContactsPage | Outcome:
            return await contacts.page(account_id, credentials, offset=offset, limit=limit)

        return await self._asked(account_id, ask, limit)

    async def inbound_file(
        self, name: str, account_id: str, media_id: str, *, most_bytes: int, limit: timedelta
    ) -> InboundFile | Outcome:
        """A file that a person sent to the account. Never raises, and keeps to `limit`."""
        files = self[name].inbound_files
        if files is None:
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail=f"the provider {name[:60]!r} gives no files")

        async def ask(credentials: Credentials) -> InboundFile | Outcome:
            return await files.fetch(account_id, credentials, media_id, most_bytes=most_bytes, limit=limit)

        return await self._asked(account_id, ask, limit)

    async def _asked(
        self, account_id: str, ask: Callable[[Credentials], Awaitable[T]], limit: timedelta
    ) -> T | Unknown | NotConnected:
        """Ask the provider with the account's credentials. Reading them counts towards `limit`."""
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await ask(await self._credentials.resolve(account_id))
        except TimeoutError:
            return Unknown(detail="the provider did not answer in time")
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            return NotConnected(detail="the account's credentials cannot be read at the moment")

    async def server(self, account_id: str) -> str:
        """HOST:PORT of the gateway that the account's credentials name; empty if they name none. Raises
        Unavailable when it cannot know."""
        try:
            return server_of(account_id, await self._credentials.resolve(account_id))
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            raise Unavailable("the account's credentials cannot be read at the moment") from None

    async def secret(self, account_id: str, name: str) -> str | None:
        """One of the account's secrets; None: it has none of that name. Raises Unavailable when it cannot know."""
        try:
            return (await self._credentials.resolve(account_id)).get(name)
        except CredentialsUnavailable as error:
            log.credentials_unavailable(account_id, error)
            raise Unavailable("the account's credentials cannot be read at the moment") from None

    async def check(self, name: str, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return await self[name].check(account_id, credentials, limit=limit)

    async def check_stored(self, name: str, account_id: str, *, limit: timedelta) -> Checked:
        """The same with the credentials that the account has now."""
        try:
            credentials = await self._credentials.resolve(account_id)
        except CredentialsUnavailable as error:
            return Checked(works=False, detail=str(error))
        return await self.check(name, account_id, credentials, limit=limit)

    async def close(self) -> None:
        await self._http.close()
        await self._credentials.close()


def _looks_signed(provider: Provider, headers: Mapping[str, str], *, now: datetime) -> bool:
    try:
        return provider.looks_signed(headers, now=now)
    except Exception:  # noqa: BLE001 - the border, as below
        return False


def _is_genuine(provider: Provider, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
    """A verifier that fails has not verified anything."""
    try:
        return provider.verify(headers, raw_body, secret, now=now)
    except Exception:  # noqa: BLE001 - the border: a webhook that makes an adapter fail is refused, not repeated
        return False


def _parsed(provider: Provider, raw_body: bytes) -> tuple[WebhookEvent, ...]:
    """A parser that fails has understood nothing: the body is logged, counted and dropped like an unknown one."""
    try:
        return provider.parse(raw_body)
    except Exception as error:  # noqa: BLE001 - the border: an error would make the provider send the body for ever
        return (Unrecognised(detail=fault_in(error)),)
