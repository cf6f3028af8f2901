"""What was sent, and when: told by the documents of messages that were sent, as long as they are kept.

A document has two times of its send: `sentAt`, by the clock of the worker (or of the provider, whose receipt may be
faster than the answer), and its last write, by the database. Neither is the moment of the call. So only what both of
them tell, with slack for clocks and for the longest call, is called a finding: a pace that was exceeded for a second is
not seen here, and one that was doubled for a minute is.

Of order, messages tell that were due when they were written and were sent at their first attempt: of the others it is
not stored any more when they first came due.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.operations.audit.evidence import Send, overtaken, too_fast
from firestore_outbox.operations.audit.finding import Finding

CLOCKS = timedelta(seconds=5)
LONGEST_CALL = timedelta(seconds=20)
CREDIBLE = timedelta(seconds=30)
"""How far the two times of a send may differ."""
UNTIL_NOTICED = timedelta(minutes=1)
"""After a change of an account's pace, what is in flight still follows the old one."""
AT_ONCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class KnownAccount:
    account: Account
    changed_at: datetime
    """What it was before is unknown."""


class History:
    def __init__(self) -> None:
        self._threads: defaultdict[tuple[str, str], list[Send]] = defaultdict(list)
        self._times: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)

    def add(self, snapshot: Snapshot, message: OutboxMessage) -> None:
        if message.status is not OutboxStatus.SENT or message.sent_at is None:
            return
        if abs(snapshot.updated - message.sent_at) <= CREDIBLE:
            self._times[message.account_id].append((message.sent_at, message.thread_id))
        due_at = message.next_attempt_at
        is_first = message.attempts == 1 and message.series == 0 and message.run_id is None
        if due_at is not None and is_first and timedelta(0) <= snapshot.created - due_at < AT_ONCE:
            self._threads[message.account_id, message.thread_id].append(
                Send(
                    request_id=message.request_id,
                    made_at=snapshot.created,
                    due_at=due_at,
                    sent_at=message.sent_at,
                    stored_at=snapshot.updated,
                )
            )

    def out_of_order(self) -> Iterator[Finding]:
        for sends in self._threads.values():
            for first, second in overtaken(sends, CLOCKS):
                yield Finding(
                    "order",
                    paths.outbox(second.request_id),
                    f"sent at {second.sent_at:%Y-%m-%d %H:%M:%S}, and {first.request_id} of the same thread, which was "
                    f"due before it, at {first.sent_at:%H:%M:%S}",
                )

    def accounts(self) -> list[str]:
        """The messages that were sent at least in part."""
        return sorted(self._times)

    def too_fast(self, known: KnownAccount) -> Iterator[Finding]:
        """Since the account was last changed."""
        account = known.account
        since = known.changed_at + UNTIL_NOTICED
        sends = [(at, thread_id) for at, thread_id in self._times[account.account_id] if at >= since]
        yield from _exceeded(paths.account(account.account_id), account.cap, [at for at, _ in sends])
        threads: defaultdict[str, list[datetime]] = defaultdict(list)
        for at, thread_id in sends:
            threads[thread_id].append(at)
        for thread_id, times in threads.items():
            yield from _exceeded(paths.thread(thread_id), Cap.every(account.per_recipient), times)


def _exceeded(path: str, cap: Cap | None, times: list[datetime]) -> Iterator[Finding]:
    if cap is not None and (found := too_fast(times, cap, LONGEST_CALL + CLOCKS)) is not None:
        yield Finding("pace", path, str(found))
