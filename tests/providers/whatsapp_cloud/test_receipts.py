"""Meta's receipts: every one in a body, in every order."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from firestore_outbox.messages.states import MessageStatus
from firestore_outbox.providers.outcome import ErrorCode
from firestore_outbox.providers.protocol import PartReceipt, Unrecognised
from firestore_outbox.providers.whatsapp_cloud.webhook import MAX_EVENTS, events_in
from firestore_outbox.receipts.rules import Advance, Arrived, Bounced, Progress, ShownMessage, apply
from tests.providers.whatsapp_cloud.bodies import envelope, inbound, only, status


@pytest.mark.parametrize(
    ("state", "progress"),
    [("sent", Progress.SENT), ("delivered", Progress.DELIVERED), ("read", Progress.READ), ("played", Progress.READ)],
)
def test_a_good_receipt_tells_how_far_the_message_came(state: str, progress: Progress) -> None:
    extras = {"conversation": {"id": "c"}, "pricing": {"billable": True}, "recipient_type": "individual"}
    event = only(envelope({"statuses": [status(state, **extras)]}))
    assert isinstance(event, PartReceipt)
    at = datetime.fromtimestamp(1772366400, UTC)
    assert event.receipt == Arrived(progress=progress, at=at, provider_message_id="wamid.1")
    assert (event.request_id, event.tells_of_message) == ("request-1", True)


def test_only_the_last_parts_receipt_tells_of_the_message_unless_it_failed() -> None:
    first = {"biz_opaque_callback_data": "request-1:0:2"}
    good, bad = (only(envelope({"statuses": [status(state, **first)]})) for state in ("read", "failed"))
    assert isinstance(good, PartReceipt)
    assert isinstance(bad, PartReceipt)
    assert (good.tells_of_message, bad.tells_of_message) == (False, True)


def test_a_receipt_without_our_mark_is_found_by_metas_id_and_anothers_mark_is_not_ours() -> None:
    bare = status()
    del bare["biz_opaque_callback_data"]
    event = only(envelope({"statuses": [bare]}))
    assert isinstance(event, PartReceipt)
    assert (event.correlation, event.receipt.provider_message_id) == (None, "wamid.1")
    assert isinstance(only(envelope({"statuses": [status(biz_opaque_callback_data="order 66")]})), Unrecognised)


def test_a_failed_receipt_tells_the_first_reason() -> None:
    errors = [{"code": 130472, "title": "User's number is part of an experiment"}, {"code": 1, "title": "x"}]
    event = only(envelope({"statuses": [status("failed", errors=errors)]}))
    assert isinstance(event, PartReceipt)
    assert isinstance(event.receipt, Bounced)
    assert event.receipt.error.code is ErrorCode.RECIPIENT_INVALID
    assert event.receipt.error.message.startswith("130472: ")


@pytest.mark.parametrize("errors", [None, [], [{}], [{"title": "Unknown"}]])
def test_a_failed_receipt_without_a_reason_is_still_a_failure(errors: Any) -> None:
    event = only(envelope({"statuses": [status("failed", errors=errors)]}))
    assert isinstance(event, PartReceipt)
    assert isinstance(event.receipt, Bounced)
    assert event.receipt.error.code is ErrorCode.REJECTED


@pytest.mark.parametrize("at", ["1772366400", 1772366400])
def test_a_time_may_be_a_text_or_a_number(at: Any) -> None:
    event = only(envelope({"statuses": [status(timestamp=at)]}))
    assert isinstance(event, PartReceipt)
    assert event.receipt.at == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("at", ["", "soon", "-1", -1, 1.5, True, None, "9" * 30, 10**30, "1772366400.5", [1]])
def test_a_time_that_is_none_makes_a_receipt_unrecognised(at: Any) -> None:
    assert isinstance(only(envelope({"statuses": [status(timestamp=at)]})), Unrecognised)


def test_every_entry_change_and_status_is_walked_and_a_bad_one_does_not_hide_the_others() -> None:
    good = {"statuses": [status(id=f"wamid.{number}") for number in range(2)]}
    entry = {"id": "1", "changes": [{"field": "messages", "value": good}, 7, {"field": "messages", "value": good}]}
    broken = {"statuses": [None, status(), "x"], "messages": [inbound("text", {"body": "hi"})], "errors": [{"code": 1}]}
    body: dict[str, Any] = {
        "object": "whatsapp_business_account",
        "entry": [entry, None, {"changes": {}}, {"changes": [{"field": "messages", "value": broken}]}],
    }
    kinds = [type(event).__name__ for event in events_in(json.dumps(body).encode())]
    receipt, fault = "PartReceipt", "Unrecognised"
    first = [receipt, receipt, fault, receipt, receipt]
    assert kinds == [*first, fault, fault, fault, receipt, fault, "InboundMessage", fault]


def test_more_events_than_meta_sends_are_left_out_and_it_is_reported() -> None:
    events = events_in(envelope({"statuses": [status()] * (MAX_EVENTS + 5)}))
    assert len(events) == MAX_EVENTS + 1
    assert isinstance(events[-1], Unrecognised)
    assert all(isinstance(event, PartReceipt) for event in events[:-1])


def test_other_fields_than_messages_are_unrecognised_by_name_only() -> None:
    event = only(envelope({"event": "DISABLED"}, field="account_update"))
    assert event == Unrecognised(detail="a change that is not used here: account_update")
    assert "private" not in repr(events_in(envelope({}, field="private words!")))


# --- all orders of receipts

ORDERS = sorted(set(itertools.permutations(["sent", "sent", "delivered", "delivered", "read", "read"])))


@pytest.mark.parametrize("start", [MessageStatus.SENT])
def test_receipts_in_any_order_and_twice_end_as_read_with_all_times(start: MessageStatus) -> None:
    assert len(ORDERS) == 90
    for order in ORDERS:
        shown = ShownMessage(status=start)
        seen = [shown.status]
        for state in order:
            seconds = {"sent": 1772366400, "delivered": 1772366401, "read": 1772366402}[state]
            event = only(envelope({"statuses": [status(state, timestamp=str(seconds))]}))
            assert isinstance(event, PartReceipt)
            result = apply(shown, event.receipt)
            shown = result.shown if isinstance(result, Advance) else shown
            seen.append(shown.status)
        ranks = [list(MessageStatus).index(it) for it in seen]
        assert ranks == sorted(ranks), order
        assert shown.status is MessageStatus.READ
        times = [at and at.second for at in (shown.sent_at, shown.delivered_at, shown.read_at)]
        assert times == [0, 1, 2], order
