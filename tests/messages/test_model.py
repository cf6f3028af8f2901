from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from firestore_outbox.messages.model import KEEP_ENDED, OutboxMessage
from firestore_outbox.messages.states import (
    ENDED,
    SHOWN_AS,
    SHOWN_ENDS,
    TRANSITIONS,
    Event,
    IllegalTransition,
    MessageStatus,
    OutboxStatus,
    advances,
)
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from tests.builders import NOW, at, message, sending

ERROR = DeliveryError(code=ErrorCode.REJECTED, message="no", retryable=False, at=NOW)


def apply(event: Event, to: OutboxMessage) -> OutboxMessage:
    match event:
        case Event.CLAIM:
            return to.claimed(by="w1#1", lease_until=at(60))
        case Event.CONFIRM:
            return to.sent(provider_message_id="wamid.1", at=NOW)
        case Event.RETRY:
            return to.requeued(at=at(1), error=ERROR, failures=1)
        case Event.REJECT:
            return to.failed(ERROR)
        case Event.EXPIRE:
            return to.skipped(ERROR)
        case Event.CANCEL:
            return to.cancelled(at=NOW)
        case Event.DOUBT:
            return to.in_doubt(resolve_at=at(120), error=ERROR, failures=1)
        case Event.REDRIVE:
            return to.redriven(at=NOW)
        case Event.DEFER:
            return to.deferred(to=at(60), send_by=at(120))


@pytest.mark.parametrize(("status", "event"), list(product(OutboxStatus, Event)))
def test_the_table_is_the_whole_truth_about_transitions(status: OutboxStatus, event: Event) -> None:
    before = message(status=status)
    if (status, event) in TRANSITIONS:
        assert apply(event, before).status is TRANSITIONS[status, event]
    else:
        with pytest.raises(IllegalTransition, match=f"request-1: no {event} from {status}"):
            apply(event, before)


def test_the_documentation_has_the_same_table() -> None:
    section = (
        (Path(__file__).parents[2] / "docs/lane.md")
        .read_text(encoding="utf-8")
        .split("## Outbox states")[1]
        .split("Any pair not")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    written = {
        (OutboxStatus(status.strip()), Event(event.split(" ")[0])): OutboxStatus(becomes)
        for statuses, event, becomes in rows[2:]
        for status in statuses.split(",")
    }
    assert written == TRANSITIONS


def test_every_status_but_the_first_is_reached_and_every_status_is_shown() -> None:
    assert {OutboxStatus.QUEUED, *TRANSITIONS.values()} == set(OutboxStatus)
    assert set(SHOWN_AS) == set(OutboxStatus)


def test_a_message_in_flight_or_in_doubt_still_looks_queued_to_people() -> None:
    assert SHOWN_AS[OutboxStatus.SENDING] is SHOWN_AS[OutboxStatus.UNCERTAIN] is MessageStatus.QUEUED


def test_a_claim_counts_and_is_cleared_by_whatever_follows() -> None:
    claimed = message().claimed(by="w1#7", lease_until=at(60))
    assert (claimed.attempts, claimed.claimed_by, claimed.lease_until) == (1, "w1#7", at(60))
    for event in (Event.CONFIRM, Event.RETRY, Event.REJECT, Event.EXPIRE, Event.DOUBT):
        after = apply(event, claimed)
        assert (after.claimed_by, after.lease_until, after.attempts) == (None, None, 1)


def test_only_ends_have_an_expiry() -> None:
    for (status, event), becomes in TRANSITIONS.items():
        after = apply(event, message(status=status))
        assert (after.expire_at is not None) == (becomes in ENDED)
    assert sending().sent(provider_message_id="x", at=NOW).expire_at == NOW + KEEP_ENDED


def test_a_redriven_message_has_all_its_attempts_before_it() -> None:
    spent = message(status=OutboxStatus.FAILED, attempts=5, failures=5, cancel_requested=True, expire_at=at(9))
    again = spent.redriven(at=at(10))
    assert (again.failures, again.attempts, again.cancel_requested, again.expire_at) == (0, 5, False, None)


def test_what_had_failed_begins_a_new_series_and_forgets_the_old_one() -> None:
    sent = sending(doubted=True).sent(provider_message_id="wamid.1", at=NOW)
    again = sent.bounced(ERROR).redriven(at=at(10))
    assert (again.series, again.doubted, again.provider_message_id, again.sent_at) == (1, False, None, None)
    assert sending(series=1).failed(ERROR).redriven(at=at(10)).series == 2


def test_a_message_with_an_unknown_outcome_stays_in_its_series() -> None:
    unknown = replace(ERROR, code=ErrorCode.OUTCOME_UNKNOWN)
    uncertain = sending().in_doubt(resolve_at=None, error=unknown, failures=1).foretold("wamid.1")
    for in_doubt in (uncertain, uncertain.failed(unknown)):
        again = in_doubt.redriven(at=at(10))
        assert (again.series, again.doubted, again.provider_message_id) == (0, True, "wamid.1")


def test_parts_that_were_accepted_add_up_over_attempts() -> None:
    once = sending().requeued(at=at(1), error=ERROR, failures=1, parts_sent=2)
    twice = once.claimed(by="w1#2", lease_until=at(60)).requeued(at=at(5), error=ERROR, failures=2, parts_sent=1)
    assert twice.parts_sent == 3


def test_the_shown_status_moves_forward_only() -> None:
    order = [MessageStatus.QUEUED, MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ]
    for (i, one), (j, other) in product(enumerate(order), repeat=2):
        assert advances(one, other) == (j > i)


def test_ends_are_left_by_nothing_and_a_failure_does_not_undo_a_delivery() -> None:
    for end, status in product(SHOWN_ENDS, MessageStatus):
        assert not advances(end, status)
    assert advances(MessageStatus.SENT, MessageStatus.FAILED)
    assert not advances(MessageStatus.DELIVERED, MessageStatus.FAILED)
    assert not advances(MessageStatus.READ, MessageStatus.FAILED)
