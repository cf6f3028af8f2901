"""What a provider is to the rest of the program: a declaration, and three functions.

Capabilities drive behaviour: whoever sends asks the `Profile` what this provider promises, and never its name.

Sending is one call and gives an `Outcome`, closed data. A provider that refuses, throttles, breaks or says nothing is
an outcome, not an exception; only cancellation passes through. Whether a call that failed may be repeated is decided
by the line between *provably not processed* and *nobody knows* (providers/outcome.py), and an adapter that is in
doubt says `Unknown`.

A webhook is verified over its raw bytes before anything reads them, and then parsed into events:

    WebhookEvent
      PartReceipt        what became of a part that we sent
      InboundMessage     somebody wrote to the account
      SessionChanged     the account's session came up or went down
      Unrecognised       genuine, and not understood: logged and counted, never an error

Events may come late, twice and in any order; so does everything that follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One entry of an account's credentials. Addresses and ids are kept with the secrets, in one place."""

    name: str
    what: str
    """For a person: what it is, and where to find it."""
    required: bool = True
    hidden: bool = True
    """Not shown while it is typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a provider declares about itself. It never changes."""

    capability: Capability
    """Decides what an unknown outcome means."""
    part_types: frozenset[PartType]
    """A message with any other part is rejected before anything of it is sent."""
    media: MediaMode | None
    """None if it takes no media, or takes a mediaId as it is."""
    needs_session: bool
    """Sends only while a session is up, so `NotConnected` is to be expected."""
    throttle_scopes: frozenset[Scope]
    """What its throttles may name."""
    secrets: tuple[Secret, ...] = ()
    """What an account must bring, in the order in which a person is asked for it."""
    events_name_number: bool = False
    """One webhook address may serve several accounts: each event names the number that received it, and goes to the
    account of that number. An event without a number then belongs to no account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addressed:
    """An event that belongs to one account."""

    number: str | None = None
    """The receiving number, as the provider names it in the event: a phone number id or a session. None where the
    provider names none (`Profile.events_name_number`), or where this body lacks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReceipt(_Addressed):
    """What the provider says of one part that we sent."""

    receipt: Receipt
    correlation: Correlation | None
    """Ours, as the provider echoed it. None: find the message by the provider's id in the receipt. The id that a
    message keeps is its last part's, so whatever is found that way is told of as a whole."""

    @property
    def request_id(self) -> str | None:
        return None if self.correlation is None else self.correlation.request_id

    @property
    def tells_of_message(self) -> bool:
        """Whether to apply it to the message. An earlier part's receipt proves neither that the message was sent nor
        that it was delivered; only its failure counts."""
        return self.correlation is None or self.correlation.is_last or isinstance(self.receipt, Bounced)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage(_Addressed):
    provider_message_id: str
    sender: str
    """The provider's address of the person who wrote. The thread's `to` is this address, encoded where it does not
    have the form of a recipient (messages/address.py)."""
    at: datetime
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged(_Addressed):
    connected: bool
    at: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecognised:
    detail: str
    """What was not understood, without quoting it: bodies hold what people wrote."""


WebhookEvent = PartReceipt | InboundMessage | SessionChanged | Unrecognised


class SessionState(StrEnum):
    DOWN = "down"
    STARTING = "starting"
    NEEDS_PAIRING = "needs_pairing"
    """Only a person can bring it up, with the phone in hand."""
    UP = "up"
    BROKEN = "broken"


class Sessions(Protocol):
    """The live sessions of a provider that needs one to send. Starting and stopping twice does no harm."""

    async def state(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...

    async def start(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...

    async def stop(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a harmless call with an account's credentials showed."""

    works: bool
    detail: str
    """For a person: what was found, or what to mend. Quotes no secret."""


@runtime_checkable
class Provider(Protocol):
    """Adapters derive from it: most have no sessions and no handshake."""

    @property
    def name(self) -> str:
        """As in `accounts/{accountId}.provider` and in the webhook's path."""
        ...

    @property
    def profile(self) -> Profile: ...

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        """Send the parts that earlier attempts have not; never longer than `limit`, all parts together."""
        ...

    def foretold_id(self, message: OutboxMessage) -> str | None:
        """The provider's id that the last part will have, where that is known before it is sent: a receipt that names
        it then settles a call that was never answered."""
        return None

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        """Try the credentials with a call that sends nothing. Never raises."""
        ...

    @property
    def sessions(self) -> Sessions | None:
        """None where the profile needs none, or where they are looked after elsewhere."""
        return None

    def number_of(self, account_id: str, credentials: Credentials) -> str | None:
        """The account's own number, as its events name it; None where events name none, or the credentials lack it."""
        return None

    def handshake(self, query: Mapping[str, str], credentials: Credentials) -> str | None:
        """What to answer to the GET by which a provider makes sure of a webhook's address; None refuses it."""
        return None

    def asks_handshake(self, query: Mapping[str, str]) -> bool:
        """Whether a GET has the form of a handshake: looked at before the account's secrets are."""
        return False

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        """Whether the headers hold one signature, of the right form and fresh if it names its time. Looked at before
        the body is read, so it proves nothing."""
        return True

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        """Whether the provider sent this, and lately. In constant time; never raises."""
        ...

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        """Every event in it. Never raises: what cannot be read is `Unrecognised`."""
        ...
