"""The name of a lane: what kind of work it does, and for which key. Every kind is listed here."""

from __future__ import annotations

from dataclasses import dataclass

from firestore_outbox.messages.ids import account_of

OUTBOX = "outbox"
INBOUND = "inbound"
REMINDER = "reminder"
RUN = "run"
SESSION = "session"
FETCH = "fetch"
NOTIFY = "notify"

_KEYS_WITH_ACCOUNT = frozenset({OUTBOX, INBOUND, SESSION, FETCH, NOTIFY})
_OF_THE_PRODUCT = frozenset({OUTBOX, REMINDER, RUN, SESSION, FETCH, NOTIFY})


@dataclass(frozen=True, slots=True)
class LaneRef:
    kind: str
    key: str

    @property
    def path(self) -> str:
        return f"lanes/{self.kind}:{self.key}"

    @property
    def account_id(self) -> str | None:
        """The account that the key names, alone or before a recipient. None if the key names none."""
        return account_of(self.key) if self.kind in _KEYS_WITH_ACCOUNT else None

    @property
    def is_for_user_code(self) -> bool:
        """Whether one of the user's handlers runs on this lane."""
        return self.kind not in _OF_THE_PRODUCT

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


def outbox_lane(account_id: str) -> LaneRef:
    """Sends the account's messages."""
    return LaneRef(OUTBOX, account_id)


def conversation_lane(thread_id: str) -> LaneRef:
    """Handles what people write in one conversation."""
    return LaneRef(INBOUND, thread_id)


def reminder_lane(reminder_id: str) -> LaneRef:
    """Starts the reminder's runs."""
    return LaneRef(REMINDER, reminder_id)


def run_lane(run_id: str) -> LaneRef:
    """Expands one run into messages, and counts what became of them."""
    return LaneRef(RUN, run_id)


def session_lane(account_id: str) -> LaneRef:
    """Starts and stops the account's session at its gateway."""
    return LaneRef(SESSION, account_id)


def fetch_lane(account_id: str) -> LaneRef:
    """Fetches files that people sent to the account."""
    return LaneRef(FETCH, account_id)


def notify_lane(account_id: str) -> LaneRef:
    """Posts the account's notifications to its webhook, and sends them to its members' devices."""
    return LaneRef(NOTIFY, account_id)


def lane_ref(lane_id: str) -> LaneRef:
    """The lane whose document has this id."""
    kind, _, key = lane_id.partition(":")
    return LaneRef(kind, key)
