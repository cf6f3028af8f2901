"""What a turn needs of the rest of the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random

from firestore_outbox.accounts.store import AccountStore, SharedLimit
from firestore_outbox.clock import Clock
from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.plans.plan import Plan
from firestore_outbox.plans.usage import Counts
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sending.app_throttles import AppThrottles
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.settings import Settings

OnDry = Callable[[str], Awaitable[None]]
"""Called with the id of a run when a turn worked on its documents and no more of them are waiting."""


@dataclass(frozen=True, slots=True)
class Outbox:
    messages: MessageStore
    line: Line
    accounts: AccountStore
    providers: Providers
    settings: Settings
    clock: Clock
    random: Random
    shared: SharedLimit | None
    on_dry: OnDry
    hot: HotSet
    app_throttles: AppThrottles
    counts: Counts
    plans: Mapping[str, Plan]
    """Those that are configured."""
    hold_room_bytes: int = ROOM_BYTES
    """For the holds of one lane."""
