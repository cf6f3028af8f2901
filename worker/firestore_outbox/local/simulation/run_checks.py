"""What must hold of every run of a reminder, whatever happened. Each check gives a sentence for each breach.

    fired     a reminder for one time made one run for it; one with a schedule made none for any other time
    ended     every run has ended, and every target has its outbox document, except in cancelled runs
    counts    what the run says in the end adds up, and is what its documents say
    target    no target of a run has two documents; none is sent to twice, unless the account chose to
    window    nothing is sent outside the hours of its run, by the clock of the worker that sends it
    paused    while a run is paused, and when it has ended, nothing of it is tried

The provider's record has the true time. A worker knows that time up to the error of its clock, which the attempt notes;
and the parts of one message may follow each other past the end of a window: half a message would be worse.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window, is_open
from firestore_outbox.local.simulation.reminders import ReminderSpec
from firestore_outbox.local.simulation.scenario import Scenario
from firestore_outbox.local.simulation.truth import Attempt, Seen, Truth
from firestore_outbox.reminders.run import ENDED, Counts

_LONGEST_MESSAGE = timedelta(seconds=11)
"""From the first part to the beginning of the last: half of the longest call, and a pause."""
_MOVED_BY_RECEIPTS = ("sent", "failed", "uncertain")


def run_breaches(scenario: Scenario, truth: Truth) -> Iterator[str]:
    runs = truth.collection("runs")
    documents = _documents(truth)
    for spec in scenario.reminders:
        yield from _fired(spec, truth, runs)
    for run_id, run in runs.items():
        yield from _ended(scenario, run_id, run, documents[run_id])
        yield from _counts(truth, run_id)
        yield from _targets(scenario, truth, run_id, documents[run_id])
        yield from _windows(truth, run, documents[run_id])
        yield from _quiet(truth, run_id, documents[run_id])


def _documents(truth: Truth) -> dict[str, dict[str, dict[str, Any]]]:
    """runId -> requestId -> the outbox document as it is in the end."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for request_id, data in truth.collection("outbox").items():
        if data.get("runId"):
            found[data["runId"]][request_id] = data
    return found


# --- every run comes, and ends


def _fired(spec: ReminderSpec, truth: Truth, runs: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    reminder = truth.latest().get(f"reminders/{spec.reminder_id}")
    if reminder is None:
        yield f"fired: {spec.reminder_id} is not there"
        return
    own = [run for run in runs.values() if run["reminderId"] == spec.reminder_id and "retryOf" not in run]
    if spec.fires_after is not None and [run["fireAt"] for run in own] != [reminder["schedule"]["at"]]:
        yield f"fired: {spec.reminder_id} fires once, and made {sorted(run['runId'] for run in own)}"
    for run in own:
        if spec.fires_after is None and (run["fireAt"].second, run["fireAt"].microsecond) != (0, 0):
            yield f"fired: {run['runId']} is for no full minute"


def _ended(scenario: Scenario, run_id: str, run: dict[str, Any], documents: dict[str, dict[str, Any]]) -> Iterator[str]:
    if run["status"] not in ENDED:
        yield f"ended: {run_id} is {run['status']} in the end"
    spec = next(spec for spec in scenario.reminders if spec.reminder_id == run["reminderId"])
    if run["status"] != "cancelled" and "retryOf" not in run and len(documents) != spec.total:
        yield f"ended: {run_id} has {len(documents)} documents for {spec.total} targets"
    for request_id, data in documents.items():
        if data["status"] in ("queued", "sending"):
            yield f"ended: {request_id} of {run_id} is {data['status']} in the end"


# --- counts


def _counts(truth: Truth, run_id: str) -> Iterator[str]:
    """As they were stored. Receipts may have moved a document from one end to another while they were taken."""
    states: dict[str, str] = {}
    for seen in truth.changes:
        if seen.path.startswith("outbox/") and seen.data is not None and seen.data.get("runId") == run_id:
            states[seen.path] = seen.data["status"]
        if seen.path == f"runs/{run_id}" and seen.data is not None and seen.data["status"] in ENDED:
            yield from _agree(run_id, seen.data["counts"], Counter(states.values()))
            return


def _agree(run_id: str, stored: dict[str, int], states: Counter[str]) -> Iterator[str]:
    if not Counts(**stored).adds_up:
        yield f"counts: those of {run_id} do not add up: {stored}"
    if stored["pending"] or stored["sending"]:
        yield f"counts: {run_id} has ended with {stored['pending']} pending and {stored['sending']} in flight"
    reported = {
        "total": states.total(),
        "skipped": states["skipped"],
        "cancelled": states["cancelled"],
    }
    for name, count in reported.items():
        if stored[name] != count:
            yield f"counts: {run_id} says {stored[name]} {name}, and there are {count}"
    if sum(stored[name] for name in _MOVED_BY_RECEIPTS) != sum(states[name] for name in _MOVED_BY_RECEIPTS):
        yield f"counts: {run_id} says {stored}, and there are {dict(states)}"


# --- targets


def _targets(scenario: Scenario, truth: Truth, run_id: str, documents: dict[str, dict[str, Any]]) -> Iterator[str]:
    targets: dict[str, str] = {}
    for request_id, data in documents.items():
        if data["targetId"] in targets.values():
            yield f"target: {data['targetId']} of {run_id} has two documents"
        targets[request_id] = data["targetId"]
    accounts = {account.account_id: account for account in scenario.accounts}
    accepted: Counter[tuple[str, int]] = Counter()
    delivered: Counter[tuple[str, int]] = Counter()
    for call in truth.calls:
        if call.request_id not in targets or not call.accepted:
            continue
        account = accounts[call.account_id]
        key = (targets[call.request_id], call.part)
        delivered[key] += call.delivered
        accepted[key] += 1
        if account.provider == "simulated-idempotent":
            if delivered[key] > 1:
                yield f"target: {key[0]} of {run_id} got part {key[1]} twice"
        elif account.on_uncertain == "hold" and accepted[key] > 1:
            yield f"target: part {key[1]} for {key[0]} of {run_id} was accepted twice"


# --- windows


def _windows(truth: Truth, run: dict[str, Any], documents: dict[str, dict[str, Any]]) -> Iterator[str]:
    hours = run["window"]
    window = Window(start_hour=hours["startHour"], end_hour=hours["endHour"], zone=ZoneInfo(run["timezone"]))
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in truth.attempts:
        if attempt.request_id in documents:
            attempts[attempt.request_id].append(attempt)
            if not is_open(window, attempt.at + attempt.skew):
                yield f"window: {attempt.request_id} of {run['runId']} was tried at {_shown(attempt.at, attempt.skew)}"
    for call in truth.calls:
        if call.request_id in documents:
            last = max((one for one in attempts[call.request_id] if one.at <= call.at), key=lambda one: one.at)
            latest = last.at + (timedelta(0) if call.part == 0 else _LONGEST_MESSAGE)
            if call.at > latest and not is_open(window, call.at + last.skew):
                yield f"window: part {call.part} of {call.request_id} was sent at {_shown(call.at, last.skew)}"


def _shown(at: datetime, skew: timedelta) -> str:
    return f"{at:%H:%M:%S.%f} by a clock {skew.total_seconds():+.1f} s off"


# --- quiet


def _quiet(truth: Truth, run_id: str, documents: dict[str, dict[str, Any]]) -> Iterator[str]:
    changes = [seen for seen in truth.changes if seen.path == f"runs/{run_id}" and seen.data is not None]
    attempts = [attempt for attempt in truth.attempts if attempt.request_id in documents]
    for number, seen in enumerate(changes):
        status = _status(seen)
        if status != "paused" and status not in ENDED:
            continue
        until = changes[number + 1].at if number + 1 < len(changes) else None
        for attempt in attempts:
            if seen.at < attempt.at and (until is None or attempt.at < until):
                yield f"paused: {attempt.request_id} of {run_id}, which is {status}, was tried at {attempt.at:%H:%M:%S}"


def _status(seen: Seen) -> str:
    return str((seen.data or {}).get("status"))
