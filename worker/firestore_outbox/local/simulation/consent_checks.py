"""What must hold of the recipients of runs. Each check gives a sentence for each breach.

    opted out    no target is claimed later than 20 s after its address opted out, unless an operator put it back. It
                 has opted out when the message with the word is stored, or when the operator's command has ended
    hours        nothing of a run is sent outside the recipient's hours, by the clock of the worker that sends it
    frequency    no recipient gets more of an account's marketing runs than its cap; and nothing is held back below it
    reasons      what an ended run says of why messages failed or were skipped adds up, and is what its documents say;
                 no target is skipped for a reason that there was not

A target that is tried again takes the place of the failed one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window, is_open
from firestore_outbox.consent.words import Wish, wish_in
from firestore_outbox.local.simulation.reminders import ReminderSpec
from firestore_outbox.local.simulation.scenario import AccountSpec, Scenario
from firestore_outbox.local.simulation.truth import Truth
from firestore_outbox.reminders.run import ENDED

TAKES_EFFECT_WITHIN = timedelta(seconds=20)
Documents = Mapping[str, dict[str, Any]]


def consent_breaches(scenario: Scenario, truth: Truth) -> Iterator[str]:
    documents = {name: data for name, data in truth.collection("outbox").items() if data.get("runId")}
    out = _opted_out(truth)
    yield from _kept_out(truth, documents, out)
    yield from _hours(scenario, truth, documents)
    yield from _frequency(scenario, truth, documents)
    for run_id, run in truth.collection("runs").items():
        if run["status"] in ENDED:
            yield from _reasons(truth, run_id)
    yield from _unfounded(scenario, documents, out)


# --- who opted out


def _opted_out(truth: Truth) -> dict[tuple[str, str], datetime]:
    """(accountId, address) -> since when, at the latest."""
    found: dict[tuple[str, str], datetime] = {}
    for at, account_id, address in truth.opted_out:
        found[account_id, address] = min(at, found.get((account_id, address), at))
    for seen in truth.changes:
        data = seen.data
        if data is None or data.get("direction") != "inbound" or "/messages/" not in seen.path:
            continue
        key = (data["accountId"], seen.path.split("/")[1].partition("__")[2])
        said = [wish_in(part.get("text", "")) for part in data["parts"]]
        if Wish.OUT in said and (key not in found or seen.at < found[key]):
            found[key] = seen.at
    return found


def _kept_out(truth: Truth, documents: Documents, out: Mapping[tuple[str, str], datetime]) -> Iterator[str]:
    claimed: set[tuple[str, int]] = set()
    for seen in truth.changes:
        request_id = seen.path.removeprefix("outbox/")
        if request_id not in documents or request_id in truth.redriven or seen.data is None:
            continue
        claim = (request_id, seen.data["attempts"])
        if seen.data["status"] != "sending" or claim in claimed:
            continue
        claimed.add(claim)
        address = (seen.data["accountId"], seen.data["to"])
        if address in out and seen.at > out[address] + TAKES_EFFECT_WITHIN:
            yield (
                f"opted out: {request_id} to {address[1]}, who opted out at {out[address]:%H:%M:%S}, was claimed at "
                f"{seen.at:%H:%M:%S.%f}"
            )


# --- the recipient's hours


def _hours(scenario: Scenario, truth: Truth, documents: Documents) -> Iterator[str]:
    accounts = {one.account_id: one for one in scenario.accounts}
    for attempt in truth.attempts:
        hours = accounts[attempt.account_id].recipient_hours
        if hours is None or attempt.request_id not in documents:
            continue
        data = documents[attempt.request_id]
        zone = _reminder_of(scenario, truth, data).zone_of(data["targetId"]) or "UTC"
        window = Window(start_hour=hours[0], end_hour=hours[1], zone=ZoneInfo(zone))
        if not is_open(window, attempt.at + attempt.skew):
            skew = attempt.skew.total_seconds()
            yield f"hours: {attempt.request_id}, in {zone}, was tried at {attempt.at:%H:%M:%S.%f} ({skew:+.1f} s)"


def _reminder_of(scenario: Scenario, truth: Truth, data: Mapping[str, Any]) -> ReminderSpec:
    reminder_id = truth.collection("runs")[data["runId"]]["reminderId"]
    return next(one for one in scenario.reminders if one.reminder_id == reminder_id)


# --- how often


def _frequency(scenario: Scenario, truth: Truth, documents: Documents) -> Iterator[str]:
    runs, made_skipped = truth.collection("runs"), _made_skipped(truth)
    for account in scenario.accounts:
        if account.most_marketing is None:
            continue
        counted: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        capped: set[str] = set()
        for request_id, data in documents.items():
            run = runs[data["runId"]]
            if data["accountId"] != account.account_id or run.get("category") != "marketing":
                continue
            if _code(data) == "frequency_capped":
                capped.add(data["to"])
            elif request_id not in made_skipped:
                counted[data["to"]].add((_first(runs, data["runId"]), data["targetId"]))
        yield from _above(account, counted, capped)


def _above(account: AccountSpec, counted: Mapping[str, set[tuple[str, str]]], capped: set[str]) -> Iterator[str]:
    most = account.most_marketing
    assert most is not None
    for to, targets in counted.items():
        if len(targets) > most:
            yield f"frequency: {account.account_id} has {len(targets)} marketing messages for {to}, above {most}"
    for to in sorted(capped):
        if len(counted.get(to, ())) < most:
            yield f"frequency: {account.account_id} holds {to} back with {len(counted.get(to, ()))} of {most} messages"


def _first(runs: Documents, run_id: str) -> str:
    """The run whose failed targets were tried again, and again."""
    while (before := runs[run_id].get("retryOf")) is not None:
        run_id = before
    return run_id


def _made_skipped(truth: Truth) -> set[str]:
    """requestIds of the documents that say from the beginning why nothing is sent."""
    first: dict[str, str] = {}
    for seen in truth.changes:
        if seen.path.startswith("outbox/") and seen.data is not None:
            first.setdefault(seen.path.removeprefix("outbox/"), seen.data["status"])
    return {request_id for request_id, status in first.items() if status == "skipped"}


# --- why


def _reasons(truth: Truth, run_id: str) -> Iterator[str]:
    """As they were stored. What failed may be moved by receipts and operators; what was skipped stays so."""
    states: dict[str, dict[str, Any]] = {}
    for seen in truth.changes:
        if seen.data is None:
            continue
        if seen.path.startswith("outbox/") and seen.data.get("runId") == run_id:
            states[seen.path] = seen.data
        if seen.path == f"runs/{run_id}" and seen.data["status"] in ENDED:
            told = seen.data.get("reasons") or {}
            skipped = Counter(_code(one) for one in states.values() if one["status"] == "skipped")
            if told.get("skipped", {}) != dict(skipped):
                yield f"reasons: {run_id} says {told}, and its documents were skipped for {dict(skipped)}"
            if sum(told.get("skipped", {}).values()) != seen.data["counts"]["skipped"]:
                yield f"reasons: {run_id} says {told} of {seen.data['counts']}"
            return


def _unfounded(scenario: Scenario, documents: Documents, out: Mapping[tuple[str, str], datetime]) -> Iterator[str]:
    accounts = {one.account_id: one for one in scenario.accounts}
    for request_id, data in documents.items():
        account = accounts[data["accountId"]]
        is_founded = {
            "opted_out": (data["accountId"], data["to"]) in out,
            "outside_hours": account.recipient_hours is not None,
            "frequency_capped": account.most_marketing is not None,
        }.get(_code(data) or "", True)
        if not is_founded:
            yield f"reasons: {request_id} to {data['to']} is {data['status']} with {_code(data)}, without cause"


def _code(data: Mapping[str, Any]) -> str | None:
    return (data.get("lastError") or {}).get("code")
