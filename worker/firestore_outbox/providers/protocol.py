"""The interface of a provider: a profile, and functions that send, check, verify and parse.

The `Profile` drives behaviour: the rest of the program asks it what the provider promises, and never looks at its name.

Sending is one call and returns an `Outcome`, closed data. A provider that refuses, throttles, breaks or does not answer
is an outcome, not an exception; only cancellation passes through. Whether a failed call may be repeated depends on the
line between *provably not processed* and *unknown* (providers/outcome.py). An adapter that is in doubt returns
`Unknown`.

A webhook is verified over its raw bytes before anything reads them, and then parsed into events:

    WebhookEvent
      PartReceipt        what became of a part that was sent
      InboundMessage     a person wrote to the account
      SessionChanged     the account's session came up or went down
      Unrecognised       genuine, and not understood: logged and counted, never an error

Events may come late, twice and in any order; so does everything that follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import OutboxMessage, Part
from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.outcome import Capability, Outcome, Scope
from firestore_outbox.receipts.rules import Bounced, Receipt

LONGEST_NUMBER = 128
"""Characters of a receiving number; the longest known are session names of 54."""


def number_from(value: object) -> str | None:
    """A receiving number as a body names it; None for what cannot be one."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else value
    fits = isinstance(text, str) and 0 < len(text) <= LONGEST_NUMBER and text.isascii() and text.isprintable()
    return str(text) if fits else None


PartType = Literal["text", "media", "template"]


class MediaMode(StrEnum):
    """How a provider takes media."""

    UPLOAD = "upload"
    """Uploaded first; the message names the provider's own id."""
    LINK = "link"
    """The message has a URL, which the provider fetches."""
    INLINE = "inline"
    """The bytes travel in the message."""
    LINK_OR_INLINE = "link_or_inline"
    """A URL that the provider fetches at once; the bytes if storage has no URLs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One entry of an account's credentials. Addresses and ids are stored with the secrets."""

    name: str
    what: str
    """What it is and where to find it, for the person who is asked."""
    required: bool = True
    hidden: bool = True
    """Whether typing does not echo it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a provider declares about itself. Constant."""

    capability: Capability
    """Decides what an unknown outcome means."""
    part_types: frozenset[PartType]
    """A message with another type of part is rejected before any part is sent."""
    media: MediaMode | None
    """None: the provider takes no media, or takes a mediaId unchanged."""
    throttle_scopes: frozenset[Scope]
    """The scopes that its throttles may name."""
    secrets: tuple[Secret, ...] = ()
    """What an account needs, in the order in which `outbox accounts add` asks for it."""
    events_name_number: bool = False
    """Whether each event names the number that received it. One webhook address may then serve several accounts: an
    event goes to the account of its number, and an event without a number belongs to no account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addressed:
    """An event that belongs to one account."""

    number: str | None = None
    """The receiving number, as the provider names it: a phone number id or a session. None if the provider names none
    (`Profile.events_name_number`), or this event lacks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReceipt(_Addressed):
    """What the provider reports about one part that was sent."""

    receipt: Receipt
    correlation: Correlation | None
    """The mark of the part, if the provider echoes it. None: the message is found by the provider's id in the receipt.
    A message stores the id of its last part, so such a receipt is about the whole message."""

    @property
    def request_id(self) -> str | None:
        return None if self.correlation is None else self.correlation.request_id

    @property
    def tells_of_message(self) -> bool:
        """Whether to apply it to the message. A receipt of an earlier part proves neither that the message was sent
        nor that it was delivered; only its failure counts."""
        return self.correlation is None or self.correlation.is_last or isinstance(self.receipt, Bounced)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage(_Addressed):
    """A message that a person wrote to the account."""

    provider_message_id: str
    sender: str
    """The provider's address of the person. The thread's `to` is this address, encoded if it does not have the form of
    a recipient."""
    at: datetime
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged(_Addressed):
    """The account's session came up or went down."""

    connected: bool
    at: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecognised:
    """A genuine event that the adapter does not understand. It is logged and counted."""

    detail: str
    """What was not understood. Do not quote the event: it may hold private text."""


WebhookEvent = PartReceipt | InboundMessage | SessionChanged | Unrecognised
"""What `Provider.parse` returns."""


class SessionState(StrEnum):
    """The state of an account's session at its provider."""

    DOWN = "down"
    STARTING = "starting"
    NEEDS_PAIRING = "needs_pairing"
    """Only a person with the phone can bring it up."""
    UP = "up"
    BROKEN = "broken"


class Sessions(Protocol):
    """The sessions of a provider that needs one to send. Starting or stopping twice does no harm."""

    async def state(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...

    async def start(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...

    async def stop(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...


@dataclass(frozen=True, slots=True)
class PairingCode:
    """What a person scans with the phone to link it."""

    code: str
    """The text of the QR code."""


class Pairing(Protocol):
    """Linking an account to its phone. Each call may be repeated, and does no harm the second time."""

    async def create(
        self, account_id: str, credentials: Credentials, *, webhook: str, limit: timedelta
    ) -> SessionState | Outcome:
        """Make the account's session, or correct the one there is, so that its events go to the address `webhook`,
        signed with the account's webhook secret; and start it."""
        ...

    async def code(
        self, account_id: str, credentials: Credentials, *, limit: timedelta
    ) -> PairingCode | SessionState | Outcome:
        """The code to scan; the session's state if it shows none."""
        ...

    async def logout(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        """Unlink the phone. The session is down afterwards, and needs pairing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A person or a group that the account knows."""

    address: str
    """As a message names the recipient."""
    name: str | None = None
    """As the account's phone book has it."""
    push_name: str | None = None
    """As the person calls themselves."""
    picture: str | None = None
    """A URL, if the provider gives one with the contact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactsPage:
    contacts: tuple[Contact, ...]
    next_offset: int | None
    """Where the next page begins; None: this is the last one."""


class Contacts(Protocol):
    """The contacts of an account whose session is up."""

    async def page(
        self, account_id: str, credentials: Credentials, *, offset: int, limit: timedelta
    ) -> ContactsPage | Outcome:
        """The contacts from `offset` on, in an order that stays the same."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundFile:
    """A file that a person sent, whole."""

    content: bytes = field(repr=False)


class InboundFiles(Protocol):
    """Files that people sent, which the provider keeps for some time."""

    async def fetch(
        self, account_id: str, credentials: Credentials, media_id: str, *, most_bytes: int, limit: timedelta
    ) -> InboundFile | Outcome:
        """The file of an inbound message's media part. `Rejected`: it is gone, or larger than `most_bytes`. Call the
        provider's own hosts alone: a webhook may name any address."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of `Provider.check`."""

    works: bool
    detail: str
    """What was found, or what to correct, for a person. Quotes no secret."""


@runtime_checkable
class Provider(Protocol):
    """An adapter. Derive from it: the methods that most adapters do not need have defaults."""

    @property
    def name(self) -> str:
        """The value of `accounts/{accountId}.provider`, and a segment of the webhook's path."""
        ...

    @property
    def profile(self) -> Profile:
        """What the provider promises."""
        ...

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        """Send the parts that earlier attempts did not, all within `limit`. `ProviderTools.parts` does the loop."""
        ...

    def foretold_id(self, message: OutboxMessage) -> str | None:
        """The provider's id of the last part, if it is known before the call: a receipt with it settles an unanswered
        call. None: not known."""
        return None

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        """Test the credentials with a call that sends nothing. Must not raise."""
        ...

    @property
    def sessions(self) -> Sessions | None:
        """None: the provider needs no sessions, or they are managed elsewhere."""
        return None

    @property
    def contacts(self) -> Contacts | None:
        """None: the provider tells no contacts."""
        return None

    @property
    def inbound_files(self) -> InboundFiles | None:
        """None: files that people send stay at the provider."""
        return None

    @property
    def pairing(self) -> Pairing | None:
        """None: an account needs no phone to be linked, or that is done elsewhere."""
        return None

    def number_of(self, account_id: str, credentials: Credentials) -> str | None:
        """The account's own number, as its events name it. None: events name none, or the credentials lack it."""
        return None

    def handshake(self, query: Mapping[str, str], credentials: Credentials) -> str | None:
        """The answer to the GET by which a provider verifies a webhook's address; None refuses it."""
        return None

    def asks_handshake(self, query: Mapping[str, str]) -> bool:
        """Whether a GET has the form of a handshake. Called before the account's secrets are read."""
        return False

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        """Whether the headers hold one signature of the right form, and fresh if it has a time. Called before the body
        is read, so it proves nothing."""
        return True

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        """Whether the provider signed this body, recently if the scheme has a time. Compare in constant time."""
        ...

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        """All events of a body. An event that cannot be read is `Unrecognised`."""
        ...
