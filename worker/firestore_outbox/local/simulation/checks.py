"""What must hold of a run, whatever happened in it. Each check gives a sentence for each breach.

    lost         every message that a client wrote has ended, or waits for a person as its account chose
    calls        one claim makes one attempt; no attempt without a claim
    untrue       a message that is shown as not sent was not sent, or is reported as uncertain
    unsent       what bounced and was put back is not called sent before all of it went out once more
    forgotten    what a worker knows to be accepted does not stay in doubt, if it lived and the store answered, and no
                 operator was faster
    twice        no part is accepted twice, unless the provider promises to deliver it once, or the account said so, or
                 an operator
    regress      a status only moves forward; what is set once is never changed
    pace         no cap is exceeded in any window
    day          no cap of an account's day is exceeded
    order        within a thread, messages go in the order in which they first came due, one after the other
    fence        a lane's fence only grows
    inbound      what came in is stored once, counted once, and handed on
    stored       what `outbox audit` checks

and of the runs of reminders what run_checks.py says, of their recipients what consent_checks.py says, of urgent
messages what ahead_checks.py says, and of the user's handlers what user_events.py says.

Order, exactly: of two messages of one thread, where the first came due earlier and was visible before the request for
the second arrived (or before the second came due), every attempt of the first precedes every attempt of the second.
Nothing in it depends on how the attempts end. Two writes that overlap have no order that a client could know of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.local.simulation.ahead_checks import ahead_breaches
from firestore_outbox.local.simulation.consent_checks import consent_breaches
from firestore_outbox.local.simulation.day_caps import day_breaches
from firestore_outbox.local.simulation.play import Play
from firestore_outbox.local.simulation.run_checks import run_breaches
from firestore_outbox.local.simulation.scenario import AccountSpec, Scenario
from firestore_outbox.local.simulation.truth import Attempt, Truth
from firestore_outbox.local.simulation.user_events import event_breaches
from firestore_outbox.messages.states import TRANSITIONS, Event, MessageStatus, advances
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.operations.audit.evidence import too_fast
from firestore_outbox.operations.audit.finding import Finding

_MOVES = {(before.value, after.value) for (before, event), after in TRANSITIONS.items() if event is not Event.REDRIVE}
_REDRIVES = {(before.value, after.value) for (before, event), after in TRANSITIONS.items() if event is Event.REDRIVE}
_SET_ONCE = ("sentAt", "deliveredAt", "readAt", "failedAt", "createdAt")
BOUNCED = "The message could not be delivered."
"""What the provider's receipts say of what it accepted and could not deliver."""
_ROUNDING = timedelta(milliseconds=1)


async def breaches(scenario: Scenario, play: Play) -> list[str]:
    truth = play.world.truth
    found = [
        *_lost(scenario, play),
        *_calls(truth),
        *_untrue(scenario, truth),
        *_unsent(truth),
        *_forgotten(scenario, truth),
        *_twice(scenario, truth),
        *_regress(truth),
        *_fence(truth),
        *_inbound(truth),
        *run_breaches(scenario, truth),
        *consent_breaches(scenario, truth),
        *ahead_breaches(scenario, truth),
        *event_breaches(
            play.events, play.world, is_steady=not scenario.has_wild_clocks and "stalls" not in scenario.troubles
        ),
    ]
    if not scenario.has_wild_clocks:
        found += [*_pace(scenario, truth), *_order(scenario, truth)]
    return found + [f"stored {finding}" for finding in await _stored(scenario, play)]


async def _stored(scenario: Scenario, play: Play) -> list[Finding]:
    system = play.world.client.system
    findings = await audit(
        system.gateway, system.accounts, now=play.world.clock() + timedelta(hours=1), overlap=scenario.settings.overlap
    )
    untold = {"order", "pace"} if scenario.has_wild_clocks else set()
    return [finding for finding in findings if finding.invariant not in untold]


# --- nothing is lost


def _lost(scenario: Scenario, play: Play) -> Iterator[str]:
    latest = play.world.truth.latest()
    holds = {account.account_id for account in scenario.accounts if account.on_uncertain == "hold"}
    if not play.rested:
        yield "lost: the system did not come to rest"
    for spec in scenario.messages:
        data = latest.get(f"outbox/{spec.request_id}")
        if data is None:
            yield f"lost: {spec.request_id} has no outbox document"
            continue
        status = data["status"]
        if spec.fault is not None and (status, _code(data)) not in _ENDS_OF_MALFORMED:
            yield f"lost: {spec.request_id} is malformed ({spec.fault}) and {status} with {_code(data)}"
        if status in ("queued", "sending"):
            yield f"lost: {spec.request_id} is {status} in the end"
    for path, data in latest.items():
        if path.startswith("outbox/") and data["status"] == "uncertain" and not _waits_for_a_person(data, holds):
            yield f"lost: {path} is uncertain in the end"


_ENDS_OF_MALFORMED = {("failed", "invalid_message")}


def _waits_for_a_person(data: dict[str, Any], holds: set[str]) -> bool:
    return data["accountId"] in holds and data.get("nextAttemptAt") is None


def _code(data: dict[str, Any]) -> str | None:
    return (data.get("lastError") or {}).get("code")


# --- calls


def _calls(truth: Truth) -> Iterator[str]:
    claims = {
        (seen.path.removeprefix("outbox/"), seen.data["attempts"], seen.data.get("claimedBy"))
        for seen in truth.changes
        if seen.path.startswith("outbox/") and seen.data is not None and seen.data["status"] == "sending"
    }
    made: set[tuple[str, int]] = set()
    for attempt in truth.attempts:
        claim = (attempt.request_id, attempt.number, attempt.claimed_by)
        if claim not in claims:
            yield f"calls: {attempt.process} calls for {attempt.request_id} without a claim ({attempt.claimed_by})"
        if claim[:2] in made:
            yield f"calls: claim {attempt.number} of {attempt.request_id} is used twice"
        made.add(claim[:2])
    attempts: dict[str, int] = defaultdict(int)
    for request_id, _ in made:
        attempts[request_id] += 1
    parts: dict[tuple[str, int], int] = defaultdict(int)
    for call in truth.calls:
        parts[call.request_id, call.part] += 1
    for (request_id, part), calls in parts.items():
        if calls > attempts[request_id]:
            yield f"calls: part {part} of {request_id} was called {calls} times in {attempts[request_id]} attempts"


def _twice(scenario: Scenario, truth: Truth) -> Iterator[str]:
    accounts = {account.account_id: account for account in scenario.accounts}
    accepted: dict[tuple[str, str, int], int] = defaultdict(int)
    delivered: dict[tuple[str, str, int], int] = defaultdict(int)
    keys: dict[tuple[str, str, int], set[str | None]] = defaultdict(set)
    for call in truth.calls:
        if call.accepted:
            accepted[call.account_id, call.request_id, call.part] += 1
            delivered[call.account_id, call.request_id, call.part] += call.delivered
            keys[call.account_id, call.request_id, call.part].add(call.idempotency_key)
    for (account_id, request_id, part), times in accepted.items():
        account = accounts[account_id]
        is_resend_safe = account.provider == "simulated-idempotent"
        if is_resend_safe and delivered[account_id, request_id, part] > len(keys[account_id, request_id, part]):
            yield f"twice: part {part} of {request_id} was delivered twice in spite of its key"
        is_redriven = request_id in truth.redriven
        if is_resend_safe and len(keys[account_id, request_id, part]) > 1 and not is_redriven:
            yield f"twice: part {part} of {request_id} was given another key, and no operator had put it back"
        is_asked_for = account.on_uncertain == "resend" or is_redriven
        if times > 1 and not is_resend_safe and not is_asked_for:
            yield f"twice: part {part} of {request_id} was accepted {times} times"


def _untrue(scenario: Scenario, truth: Truth) -> Iterator[str]:
    bounced = _last_redriven_as_bounced(truth)
    accepted = {
        (call.request_id, call.part)
        for call in truth.calls
        if call.accepted and call.at > bounced.get(call.request_id, scenario.start)
    }
    parts = {f"outbox/{spec.request_id}": spec.parts for spec in scenario.messages}
    for path, data in truth.latest().items():
        request_id = path.removeprefix("outbox/")
        if not path.startswith("outbox/") or data["status"] not in ("failed", "skipped", "cancelled"):
            continue
        if (request_id, (parts.get(path) or len(data["parts"])) - 1) not in accepted:
            continue
        is_reported = _code(data) == "outcome_unknown" or _has_bounced(data)
        if data["status"] != "failed" or not is_reported:
            yield f"untrue: {request_id} was accepted, and is {data['status']} with {_code(data)}"


def _unsent(truth: Truth) -> Iterator[str]:
    out = [(call.request_id, call.part, call.at) for call in truth.calls if call.delivered]
    for request_id, since in _last_redriven_as_bounced(truth).items():
        data = truth.collection("outbox")[request_id]
        parts = {part for of, part, at in out if of == request_id and at > since}
        if data["status"] == "sent" and len(parts) < len(data["parts"]):
            yield f"unsent: {request_id} bounced and was put back, and is called sent without having gone out again"


def _last_redriven_as_bounced(truth: Truth) -> dict[str, datetime]:
    """requestId -> when it was put back, although it had been accepted: the provider had said that it never arrived."""
    last: dict[str, datetime] = {}
    bounced: set[str] = set()
    for seen in truth.changes:
        if not seen.path.startswith("outbox/") or seen.data is None:
            continue
        if _has_bounced(seen.data):
            bounced.add(seen.path)
        elif seen.path in bounced:
            bounced.remove(seen.path)
            last[seen.path.removeprefix("outbox/")] = seen.at
    return last


def _has_bounced(data: dict[str, Any]) -> bool:
    return data["status"] == "failed" and (data.get("lastError") or {}).get("message") == BOUNCED


def _forgotten(scenario: Scenario, truth: Truth) -> Iterator[str]:
    if scenario.troubles & _STORE_TROUBLES:
        return
    dead = {process.name for process in truth.dead}
    for process, request_id in truth.accepted:
        data = truth.latest()[f"outbox/{request_id}"]
        is_in_doubt = data["status"] == "uncertain" or (data["status"] == "failed" and _code(data) == "outcome_unknown")
        if process not in dead and is_in_doubt and request_id not in truth.redriven | truth.given_up:
            yield f"forgotten: {process} knows that {request_id} was accepted, and it is {data['status']}"


_STORE_TROUBLES = {"contention", "late calls", "lost answers", "lost requests"}


# --- documents only move forward


def _regress(truth: Truth) -> Iterator[str]:
    before: dict[str, dict[str, Any]] = {}
    for seen in truth.changes:
        old, new = before.get(seen.path), seen.data
        if new is None:
            continue
        before[seen.path] = new
        if old is None:
            continue
        is_redriven = seen.path.rsplit("/", 1)[-1] in truth.redriven and new["status"] == "queued"
        if seen.path.startswith("outbox/"):
            yield from _outbox_regress(seen.path, old, new, is_redriven)
        elif "/messages/" in seen.path and not (is_redriven and old["status"] == "failed"):
            yield from _message_regress(seen.path, old, new)


def _outbox_regress(path: str, old: dict[str, Any], new: dict[str, Any], is_redriven: bool) -> Iterator[str]:
    move = (old["status"], new["status"])
    if old["status"] != new["status"] and move not in _MOVES and not (is_redriven and move in _REDRIVES):
        yield f"regress: {path} went from {old['status']} to {new['status']}"
    may_shrink = "failures" if is_redriven else "partsSent" if _has_bounced(new) else ""
    for name in ("attempts", "failures", "partsSent", "series"):
        if (
            name != may_shrink
            and isinstance(new.get(name), int)
            and isinstance(old.get(name), int)
            and new[name] < old[name]
        ):
            yield f"regress: {name} of {path} went from {old[name]} to {new[name]}"
    for name in ("requestId", "accountId", "threadId", "to", "parts", "createdAt"):
        if old.get(name) != new.get(name):
            yield f"regress: {name} of {path} was changed"


def _message_regress(path: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if old["status"] != new["status"] and not advances(MessageStatus(old["status"]), MessageStatus(new["status"])):
        yield f"regress: {path} went from {old['status']} to {new['status']}"
    for name in _SET_ONCE:
        if old.get(name) is not None and old.get(name) != new.get(name):
            yield f"regress: {name} of {path} was changed from {old.get(name)} to {new.get(name)}"
    times = [new[name] for name in ("sentAt", "deliveredAt", "readAt") if new.get(name) is not None]
    if times != sorted(times):
        yield f"regress: the times of {path} are out of order: {times}"


def _fence(truth: Truth) -> Iterator[str]:
    fences: dict[str, int] = {}
    for seen in truth.changes:
        if seen.path.startswith("lanes/") and seen.data is not None:
            fence = seen.data["fence"]
            if fence < fences.get(seen.path, 0):
                yield f"fence: {seen.path} went from {fences[seen.path]} to {fence}"
            fences[seen.path] = fence


# --- pace


def _pace(scenario: Scenario, truth: Truth) -> Iterator[str]:
    slack = 2 * scenario.widest_skew + _ROUNDING
    for account in scenario.accounts:
        mine = [attempt for attempt in truth.attempts if attempt.account_id == account.account_id]
        cap = Cap.per_minute(account.per_minute, burst=account.burst)
        if cap is not None:
            yield from _too_fast(f"account {account.account_id}", [attempt.at for attempt in mine], cap, slack)
        if account.warm_up is not None:
            yield from day_breaches(account.account_id, account.warm_up, [one.at for one in mine], slack)
        yield from _recipients(account, mine, slack)
    per_second = scenario.settings.global_per_second
    shared = Cap.per_second(per_second, burst=max(2, round(per_second)))
    if shared is not None:
        yield from _too_fast("everybody", [attempt.at for attempt in truth.attempts], shared, slack)


def _recipients(account: AccountSpec, attempts: list[Attempt], slack: timedelta) -> Iterator[str]:
    cap = Cap.every(timedelta(seconds=account.per_recipient_seconds))
    if cap is None:
        return
    threads: dict[str, list[datetime]] = defaultdict(list)
    for attempt in attempts:
        threads[attempt.thread_id].append(attempt.at)
    for thread_id, times in threads.items():
        yield from _too_fast(f"recipient {thread_id}", times, cap, slack)


def _too_fast(whose: str, times: list[datetime], cap: Cap, slack: timedelta) -> Iterator[str]:
    if (found := too_fast(times, cap, slack)) is not None:
        yield f"pace: {whose}: {found}"


# --- order


def _order(scenario: Scenario, truth: Truth) -> Iterator[str]:
    born = _born(truth, stamped_on_arrival=scenario.commit_delay is not None)
    attempts: dict[str, list[datetime]] = defaultdict(list)
    for attempt in truth.attempts:
        attempts[f"outbox/{attempt.request_id}"].append(attempt.at)
    slack = 2 * scenario.widest_skew + timedelta(seconds=1)
    for first, one in born.items():
        for second, other in born.items():
            is_there = one.visible_at < other.arrived_at or one.visible_at + slack < other.due_at
            if first == second or one.thread_id != other.thread_id or not (one.due_at < other.due_at and is_there):
                continue
            if one.is_scheduled and other.due_at - one.due_at < slack:
                continue  # both scheduled, closer together than the clocks agree
            if attempts[first] and attempts[second] and max(attempts[first]) > min(attempts[second]):
                yield (
                    f"order: {second} was tried at {min(attempts[second]):%H:%M:%S.%f}, before {first} at "
                    f"{max(attempts[first]):%H:%M:%S.%f}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Born:
    """A message as its first write made it."""

    thread_id: str
    due_at: datetime
    arrived_at: datetime
    """When the request that wrote it arrived."""
    visible_at: datetime
    """When its commit ended."""

    @property
    def is_scheduled(self) -> bool:
        return self.due_at not in (self.arrived_at, self.visible_at)


def _born(truth: Truth, *, stamped_on_arrival: bool) -> dict[str, _Born]:
    """By path. A run's messages take their places from the time at which it started, even if they were written a little
    later. Left out: what a run took out of the queue and put back, because it was paused or its window closed; and what
    an operator put back."""
    born: dict[str, _Born] = {}
    send_by: dict[str, datetime | None] = {}
    moved: set[str] = set()
    for seen in truth.changes:
        if not seen.path.startswith("outbox/") or seen.data is None:
            continue
        due, by = seen.data.get("nextAttemptAt"), seen.data.get("sendBy")
        if seen.data.get("runId") and (due is None or send_by.get(seen.path, by) != by):
            moved.add(seen.path)
        elif seen.path not in born and isinstance(due, datetime):
            arrived = seen.data["createdAt"] if stamped_on_arrival else seen.at
            born[seen.path] = _Born(
                thread_id=seen.data["threadId"],
                due_at=due if seen.data.get("runId") else max(due, arrived),
                arrived_at=arrived,
                visible_at=seen.at,
            )
        send_by[seen.path] = by
    moved |= {paths.outbox(request_id) for request_id in truth.redriven}
    return {path: one for path, one in born.items() if path not in moved}


# --- inbound


def _inbound(truth: Truth) -> Iterator[str]:
    stored: dict[str, list[datetime]] = defaultdict(list)
    for seen in truth.changes:
        if "/messages/" in seen.path and seen.data is not None and seen.data["direction"] == "inbound":
            stored[seen.data["threadId"]].append(seen.at)
    for thread_id, times in stored.items():
        unread = truth.latest()[f"threads/{thread_id}"].get("unreadCount")
        if unread != len(times):
            yield f"inbound: {thread_id} has {len(times)} messages and counts {unread}"
        if not any(at >= max(times) for at, told in truth.conversations if told == thread_id):
            yield f"inbound: the handler never saw the last message of {thread_id}"
