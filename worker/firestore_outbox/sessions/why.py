"""What an account's session waits for, in a sentence. Made of the state that session_wants.py decides on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from firestore_outbox.sessions.memory import Memory, Trouble
from firestore_outbox.sessions.slots import HotSet
from firestore_outbox.sessions.states import State
from firestore_outbox.shown_time import shown_time


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWait:
    sentence: str
    until: datetime | None = None
    """When the session is tried again; None: not at a known time."""
    needs_a_person: bool = False
    """It does not end by itself."""


def session_wait(hot: HotSet, memory: Memory, account_id: str, now: datetime) -> SessionWait | None:
    """Why an account with something to send has no session to send with; None: it has, or has not asked for one."""
    entry = hot.entries.get(account_id)
    if entry is not None and entry.state is State.HOT:
        if entry.doubted:
            return SessionWait(sentence="The account's session is being checked: a call found that it was down.")
        if not hot.is_yielding(account_id):
            return None
    elif entry is not None and entry.state is State.CONNECTING:
        return SessionWait(
            sentence=f"The account's session is connecting; that may take until {shown_time(entry.until)}."
        )
    elif memory.waits(now):
        return _after_trouble(memory)
    if (before := _before(hot, account_id, now)) is None:
        return None
    if before == 0:
        return SessionWait(sentence="The account's session is next for a slot; all slots are in use.")
    accounts = "account is" if before == 1 else "accounts are"
    return SessionWait(sentence=f"All slots for sessions are in use, and {before:,} {accounts} before this one.")


def _after_trouble(memory: Memory) -> SessionWait | None:
    at = memory.retry_at
    match memory.trouble:
        case None | Trouble.REFUSED:
            return None  # with refused credentials a send is tried, and parks the account
        case Trouble.NEEDS_PAIRING:
            return SessionWait(
                sentence="The account's session is not paired with its phone. Pair it at the provider, with the phone"
                " in hand; the messages go when it is up."
                f" The next check is at {shown_time(at)}, and when the provider reports a change.",
                needs_a_person=True,
            )
        case Trouble.TOO_SLOW:
            what = "did not come up in time"
        case Trouble.BROKEN:
            what = "is broken"
        case Trouble.UNREACHABLE:
            what = "cannot be started: its gateway does not answer"
        case Trouble.RESTARTED:
            what = "went down and reconnects"
        case _:
            assert_never(memory.trouble)
    count = f" ({memory.failures} times in a row)" if memory.failures > 1 else ""
    return SessionWait(
        sentence=f"The account's session {what}{count}; it is tried again at {shown_time(at)}.", until=at
    )


def _before(hot: HotSet, account_id: str, now: datetime) -> int | None:
    """How many accounts are before it in the line; None: it does not wait in it."""
    line = hot.as_of(now).in_order(sticky=False)
    return line.index(account_id) if account_id in line else None
