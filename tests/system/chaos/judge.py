"""What must hold after everything that happened, by three accounts of it: what the clients were told, what is stored,
and what the provider saw. Each breach is a sentence that names the message.

    lost       what was acknowledged is stored, and has ended or waits for a person; what is stored was written
    twice      nothing reached its recipient twice, whatever the provider promises: every account holds what is in doubt
    doubt      in doubt is only what cannot be known: a receipt that names the message has settled it
    untrue     `sent` was accepted by the provider; what ended otherwise was not, or says that it is unknown
    calls      no more calls than claims
    order      recipients see the messages of a conversation in the order in which they were written
    counts     written, stored, shown and ended are the same messages
    stored     what `outbox audit` checks

Order is that of the deliveries. A message in doubt whose receipts cannot name it has let its thread go on at once
(docs/lane.md): a worker that was stopped in the midst of a call may still make it, and no fence can call that back. It
is not compared, whether it is `uncertain` in the end or that worker came back and could tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.system.chaos.clients import Account, Written

Fields = Mapping[str, Any]
IN_QUEUE = frozenset({"queued", "sending"})
ENDED = frozenset({"sent", "failed", "skipped", "cancelled"})
UNKNOWN = "outcome_unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """By requestId where it says so."""

    accounts: Mapping[str, Account]
    written: Sequence[Written]
    outbox: Mapping[str, Fields]
    shown: Mapping[str, Fields]
    calls: Sequence[Fields]
    """As the provider recorded them, oldest first."""
    audited: Sequence[str] = ()
    """The auditor's findings."""
    accepted: Mapping[str, int] = field(init=False)
    delivered: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        accepted, delivered = Counter[str](), Counter[str]()
        for call in self.calls:
            accepted[call["requestId"]] += bool(call["accepted"])
            delivered[call["requestId"]] += int(call["delivered"])
        object.__setattr__(self, "accepted", accepted)
        object.__setattr__(self, "delivered", delivered)

    def status(self, request_id: str) -> str:
        return str(self.outbox[request_id].get("status"))

    def has_let_its_thread_go(self, request_id: str) -> bool:
        was_in_doubt = bool(self.outbox[request_id].get("doubted")) or self.status(request_id) == "uncertain"
        return was_in_doubt and not self.account(request_id).echoes

    def account(self, request_id: str) -> Account:
        return self.accounts[self.outbox[request_id]["accountId"]]


def breaches(evidence: Evidence) -> list[str]:
    return [
        *_lost(evidence),
        *_twice(evidence),
        *_doubt(evidence),
        *_untrue(evidence),
        *_calls(evidence),
        *_order(evidence),
        *_counts(evidence),
        *(f"stored: {finding}" for finding in evidence.audited),
    ]


def _lost(evidence: Evidence) -> Iterator[str]:
    for one in evidence.written:
        if one.is_acknowledged and one.request_id not in evidence.outbox:
            yield f"lost: {one.request_id} was acknowledged after {one.tries} tries, and is not stored"
    for request_id, data in evidence.outbox.items():
        status, at = evidence.status(request_id), data.get("nextAttemptAt")
        if status in IN_QUEUE:
            yield f"lost: {request_id} is {status} in the end, after {data.get('attempts')} attempts"
        elif status == "uncertain" and at is not None:
            yield f"lost: {request_id} still waits for a receipt, until {at}"


def _twice(evidence: Evidence) -> Iterator[str]:
    for request_id, times in evidence.delivered.items():
        if times > 1:
            yield f"twice: {request_id} reached its recipient {times} times"
    for request_id, times in evidence.accepted.items():
        if times > 1 and request_id in evidence.outbox and not evidence.account(request_id).is_resend_safe:
            yield f"twice: {request_id} was accepted {times} times by a provider that does not promise to know it again"


def _doubt(evidence: Evidence) -> Iterator[str]:
    for request_id in evidence.outbox:
        if evidence.status(request_id) != "uncertain" or not evidence.accepted[request_id]:
            continue
        if evidence.account(request_id).echoes:
            yield f"doubt: {request_id} is uncertain, though its receipts named it"


def _untrue(evidence: Evidence) -> Iterator[str]:
    for request_id, data in evidence.outbox.items():
        status, code = evidence.status(request_id), (data.get("lastError") or {}).get("code")
        was_accepted = evidence.accepted[request_id] > 0
        if status == "sent" and not was_accepted:
            yield f"untrue: {request_id} is sent, and the provider never accepted it"
        if status in ENDED - {"sent"} and was_accepted and (status, code) != ("failed", UNKNOWN):
            yield f"untrue: {request_id} was accepted, and is {status} with {code}"
    for request_id, times in evidence.accepted.items():
        if times and request_id not in evidence.outbox:
            yield f"untrue: {request_id} was accepted by the provider, and is not stored"


def _calls(evidence: Evidence) -> Iterator[str]:
    for request_id, calls in Counter(call["requestId"] for call in evidence.calls).items():
        claims = evidence.outbox.get(request_id, {}).get("attempts", 0)
        if calls > claims:
            yield f"calls: {request_id} was called {calls} times under {claims} claims"


def _order(evidence: Evidence) -> Iterator[str]:
    reached: dict[str, int] = {}
    for number, call in enumerate(evidence.calls):
        if call["delivered"]:
            reached.setdefault(call["requestId"], number)
    threads: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in evidence.written:
        is_compared = one.is_acknowledged and one.request_id in reached and one.request_id in evidence.outbox
        if is_compared and not evidence.has_let_its_thread_go(one.request_id):
            threads[one.account_id, one.to].append(one.request_id)
    for (account_id, to), request_ids in threads.items():
        last = request_ids[0]
        for request_id in request_ids[1:]:
            if reached[request_id] < reached[last]:
                yield f"order: {request_id} reached {to} of {account_id} before {last}, which was written earlier"
            else:
                last = request_id


def _counts(evidence: Evidence) -> Iterator[str]:
    written = {one.request_id for one in evidence.written}
    if len(written) != len(evidence.written):
        yield f"counts: {len(evidence.written) - len(written)} messages were written twice by their clients"
    for request_id in sorted(evidence.outbox.keys() - written):
        yield f"counts: {request_id} is stored, and no client wrote it"
    for request_id in sorted(evidence.outbox.keys() ^ evidence.shown.keys()):
        yield f"counts: {request_id} is only one of outbox document and message"
