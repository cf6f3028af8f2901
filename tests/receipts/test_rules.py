from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.receipts.rules import (
    Advance,
    Arrived,
    Because,
    Bounced,
    Ignored,
    Progress,
    Receipt,
    ShownMessage,
    apply,
    needs_outbox,
)
from tests.builders import NOW, at, message, sending

SENT = Arrived(progress=Progress.SENT, at=at(1), provider_message_id="wamid.1")
DELIVERED = Arrived(progress=Progress.DELIVERED, at=at(2), provider_message_id="wamid.1")
READ = Arrived(progress=Progress.READ, at=at(3), provider_message_id="wamid.1")
BOUNCED = Bounced(
    error=DeliveryError(code=ErrorCode.RECIPIENT_INVALID, message="not on WhatsApp", retryable=False, at=at(4))
)
UNKNOWN = DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message="no answer", retryable=True, at=at(5))

QUEUED = ShownMessage(status=MessageStatus.QUEUED)
SHOWN_SENT = ShownMessage(status=MessageStatus.SENT, provider_message_id="wamid.1", sent_at=NOW)


LINE = [MessageStatus.QUEUED, MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ]


def forward(one: MessageStatus, other: MessageStatus) -> bool:
    if one is other:
        return True
    if other is MessageStatus.FAILED:
        return one in LINE[:2]
    return one in LINE and other in LINE and LINE.index(one) < LINE.index(other)


def after(
    shown: ShownMessage, outbox: OutboxMessage | None, *receipts: Receipt
) -> tuple[ShownMessage, OutboxMessage | None]:
    """As the handler does it: the outbox document is read only when it is needed."""
    for receipt in receipts:
        decision = apply(shown, receipt, outbox if needs_outbox(shown, receipt) else None)
        if isinstance(decision, Advance):
            assert forward(shown.status, decision.shown.status)
            shown, outbox = decision.shown, decision.outbox or outbox
    return shown, outbox


@pytest.mark.parametrize("order", list(permutations([SENT, DELIVERED, READ])))
def test_receipts_in_any_order_and_twice_end_in_the_same_state(order: tuple[Receipt, ...]) -> None:
    shown, _ = after(SHOWN_SENT, None, *order, *reversed(order))
    assert shown == ShownMessage(
        status=MessageStatus.READ,
        provider_message_id="wamid.1",
        sent_at=NOW,
        delivered_at=at(2),
        read_at=at(3),
    )


def test_normally_the_outbox_is_not_read() -> None:
    assert not needs_outbox(SHOWN_SENT, DELIVERED)
    assert needs_outbox(QUEUED, DELIVERED)
    assert needs_outbox(SHOWN_SENT, BOUNCED)


def test_a_receipt_twice_is_old_news_and_writes_nothing() -> None:
    shown, _ = after(SHOWN_SENT, None, DELIVERED)
    assert apply(shown, DELIVERED) == Ignored(Because.OLD_NEWS)


@pytest.mark.parametrize("status", [OutboxStatus.SENDING, OutboxStatus.UNCERTAIN, OutboxStatus.QUEUED])
def test_a_good_receipt_settles_what_was_in_flight_in_doubt_or_about_to_be_resent(status: OutboxStatus) -> None:
    decision = apply(QUEUED, DELIVERED, sending(status=status))
    assert isinstance(decision, Advance)
    assert decision.outbox is not None
    assert (decision.outbox.status, decision.outbox.sent_at) == (OutboxStatus.SENT, at(2))
    assert (decision.shown.status, decision.shown.sent_at) == (MessageStatus.DELIVERED, at(2))


@pytest.mark.parametrize("status", [OutboxStatus.SENDING, OutboxStatus.UNCERTAIN])
def test_a_bad_receipt_settles_what_was_in_flight_or_in_doubt(status: OutboxStatus) -> None:
    decision = apply(QUEUED, BOUNCED, sending(status=status))
    assert isinstance(decision, Advance)
    assert decision.outbox is not None
    assert decision.outbox.status is OutboxStatus.FAILED
    assert decision.shown.status is MessageStatus.FAILED
    assert decision.shown.sent_at is None


def test_a_bad_receipt_of_an_earlier_attempt_does_not_stop_the_next() -> None:
    again = message(status=OutboxStatus.QUEUED, attempts=1)
    assert apply(QUEUED, BOUNCED, again) == Ignored(Because.WILL_RETRY)


def test_a_receipt_for_a_message_that_was_never_claimed_is_not_ours() -> None:
    assert apply(QUEUED, DELIVERED, message()) == Ignored(Because.NOT_OURS)
    assert apply(QUEUED, DELIVERED, None) == Ignored(Because.NOT_OURS)


def test_what_the_provider_fails_later_can_be_found_and_redriven() -> None:
    decision = apply(SHOWN_SENT, BOUNCED, sending(status=OutboxStatus.SENT))
    assert isinstance(decision, Advance)
    assert decision.shown.status is MessageStatus.FAILED
    assert decision.outbox is not None
    assert decision.outbox.status is OutboxStatus.FAILED
    assert decision.outbox.redriven(at=NOW).status is OutboxStatus.QUEUED


def mark(series: int = 0, *, part: int = 0) -> Correlation:
    return Correlation(request_id="request-1", part=part, parts=2, series=series)


def test_a_bad_receipt_of_a_part_that_the_next_attempt_leaves_out_ends_the_message() -> None:
    again = message(status=OutboxStatus.QUEUED, attempts=1, parts_sent=1)
    assert apply(QUEUED, BOUNCED, again, mark=mark(part=1)) == Ignored(Because.WILL_RETRY)
    decision = apply(QUEUED, BOUNCED, again, mark=mark(part=0))
    assert isinstance(decision, Advance)
    assert decision.shown.status is MessageStatus.FAILED
    assert decision.outbox is not None
    assert (decision.outbox.status, decision.outbox.parts_sent) == (OutboxStatus.FAILED, 0)


def bounced_and_redriven() -> OutboxMessage:
    sent = sending(parts_sent=1).sent(provider_message_id="wamid.1", at=NOW)
    return sent.bounced(BOUNCED.error).redriven(at=at(10))


@pytest.mark.parametrize("late", [SENT, DELIVERED, BOUNCED])
def test_what_is_still_told_of_a_send_that_bounced_says_nothing_of_the_message_that_was_put_back(late: Receipt) -> None:
    waiting = bounced_and_redriven()
    again = replace(QUEUED, series=waiting.series)
    assert apply(again, late, waiting, mark=mark()) == Ignored(Because.OLD_NEWS)
    claimed = waiting.claimed(by="w1#2", lease_until=at(60))
    assert apply(again, late, claimed, mark=mark()) == Ignored(Because.OLD_NEWS)
    sent = claimed.sent(provider_message_id="wamid.2", at=at(11))
    assert apply(replace(SHOWN_SENT, series=sent.series), late, sent, mark=mark()) == Ignored(Because.OLD_NEWS)


@pytest.mark.parametrize("series", [1, None])
def test_what_is_documented_the_second_send_counts_and_so_does_what_names_no_series(series: int | None) -> None:
    """What names none was found by the id that the provider gave to the second send."""
    claimed = bounced_and_redriven().claimed(by="w1#2", lease_until=at(60))
    decision = apply(replace(QUEUED, series=1), BOUNCED, claimed, mark=None if series is None else mark(series))
    assert isinstance(decision, Advance)
    assert decision.outbox is not None
    assert decision.outbox.status is OutboxStatus.FAILED


def test_what_is_documented_a_doubt_counts_also_after_a_redrive() -> None:
    """It may have arrived; and then it need not go again."""
    given_up = sending(status=OutboxStatus.UNCERTAIN, doubted=True).failed(UNKNOWN)
    for in_doubt in (sending(status=OutboxStatus.UNCERTAIN, doubted=True), given_up):
        again = in_doubt.redriven(at=at(10))
        decision = apply(replace(QUEUED, series=again.series), DELIVERED, again, mark=mark())
        assert isinstance(decision, Advance)
        assert decision.outbox is not None
        assert decision.outbox.status is OutboxStatus.SENT


def test_a_message_whose_part_bounced_goes_whole_again_and_one_that_a_person_gave_up_goes_on_where_it_was() -> None:
    in_doubt = sending(status=OutboxStatus.UNCERTAIN, doubted=True, parts_sent=1)
    for error, parts_sent in ((BOUNCED.error, 0), (UNKNOWN, 1)):
        decision = apply(QUEUED, Bounced(error=error), in_doubt)
        assert isinstance(decision, Advance)
        assert decision.outbox is not None
        assert decision.outbox.redriven(at=at(10)).parts_sent == parts_sent


def test_a_failure_does_not_undo_a_delivery_and_an_end_is_an_end() -> None:
    delivered, _ = after(SHOWN_SENT, None, DELIVERED)
    assert apply(delivered, BOUNCED) == Ignored(Because.OLD_NEWS)
    failed, _ = after(SHOWN_SENT, None, BOUNCED)
    assert apply(failed, READ) == Ignored(Because.ENDED)


def test_a_receipt_that_ends_a_doubt_is_not_followed_by_a_resend() -> None:
    _, outbox = after(QUEUED, sending(status=OutboxStatus.UNCERTAIN), READ, DELIVERED, SENT)
    assert outbox is not None
    assert outbox.status is OutboxStatus.SENT


seconds = st.floats(-5, 5).map(at)


@given(
    sent_at=seconds,
    told=st.lists(st.tuples(st.sampled_from(list(Progress)), seconds), max_size=8),
    start=st.sampled_from([SHOWN_SENT, QUEUED]),
)
def test_however_clocks_differ_a_message_is_sent_before_it_is_delivered_and_delivered_before_it_is_read(
    sent_at: datetime, told: list[tuple[Progress, datetime]], start: ShownMessage
) -> None:
    shown = replace(start, sent_at=None if start is QUEUED else sent_at)
    outbox: OutboxMessage | None = sending()
    for progress, when in told:
        before = (shown.sent_at, shown.delivered_at, shown.read_at)
        shown, outbox = after(shown, outbox, Arrived(progress=progress, at=when))
        now = (shown.sent_at, shown.delivered_at, shown.read_at)
        assert all(old in (None, new) for old, new in zip(before, now, strict=True)), "each is set once"
        times = [time for time in now if time is not None]
        assert times == sorted(times)


def test_a_receipt_whose_clock_is_behind_the_workers_takes_the_time_of_the_send() -> None:
    early = Arrived(progress=Progress.DELIVERED, at=at(-0.004))
    shown, _ = after(SHOWN_SENT, None, early)
    assert (shown.sent_at, shown.delivered_at) == (NOW, NOW)


receipts = st.lists(st.sampled_from([SENT, DELIVERED, READ, BOUNCED]), max_size=12)
starts = st.sampled_from([sending(), message(), *(sending(status=status) for status in OutboxStatus)])


@given(start=starts, shuffled=receipts)
def test_no_sequence_of_receipts_ever_moves_a_status_back(start: OutboxMessage, shuffled: list[Receipt]) -> None:
    shown, outbox = after(QUEUED, start, *shuffled)  # `after` checks each step
    again, _ = after(shown, outbox, *[receipt for receipt in shuffled if isinstance(receipt, Arrived)])
    assert again.status is shown.status or shown.status is MessageStatus.QUEUED or BOUNCED in shuffled


@given(shuffled=st.lists(st.sampled_from([SENT, DELIVERED, READ]), min_size=1, max_size=12))
def test_without_failures_the_furthest_news_wins(shuffled: list[Receipt]) -> None:
    shown, _ = after(SHOWN_SENT, None, *shuffled)
    furthest = max(shuffled, key=lambda receipt: receipt.at)
    assert isinstance(furthest, Arrived)
    assert shown.status.value == furthest.progress.value
