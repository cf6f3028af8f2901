"""One sentence for a fault, wherever it is found.

Here the backend's check, the worker and the check of a reminder are compared; tests/web/functions/test_enqueue.py and
tests/cli/test_commands.py have the HTTP API and the command, and tests/client/test_validation.py the JavaScript client.
"""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.backend.message import InvalidMessage, checked
from firestore_outbox.messages import faults, validation
from firestore_outbox.reminders.check import Faulty, NewReminder, judge
from tests.builders import NOW, raw
from tests.messages.shared_faults import SHARED, TEXT


def of_a_reminder(case: str) -> bool:
    """A run has no requestId of its own, and nothing sealed."""
    changes, _ = SHARED[case]
    return "requestId" not in changes and "sealed" not in str(changes.get("parts"))


@pytest.mark.parametrize("case", SHARED)
def test_a_backend_and_the_worker_say_the_same(case: str) -> None:
    changes, sentence = SHARED[case]
    given: dict[str, Any] = {"requestId": "request-1", "accountId": "shop", "to": "+491701", "parts": [TEXT], **changes}
    with pytest.raises(InvalidMessage) as refused:
        checked(
            request_id=given["requestId"],
            account_id=given["accountId"],
            to=given["to"],
            text=None,
            parts=given["parts"],
            uid="user",
            at=None,
            send_by=None,
            now=NOW,
        )
    assert str(refused.value).replace("request_id", "requestId").replace("account_id", "accountId") == sentence
    parsed = validation.parse_message("request-1", raw(**changes))
    assert isinstance(parsed, validation.InvalidMessage)
    assert parsed.sentence == f"{sentence}."


@pytest.mark.parametrize("case", [case for case in SHARED if of_a_reminder(case)])
def test_the_check_of_a_reminder_says_the_same(case: str) -> None:
    changes, sentence = SHARED[case]
    fields = {"accountId": "shop", "parts": [TEXT], "timezone": "UTC", "schedule": {"type": "once", "at": NOW}}
    wanted = {**fields, **{name: value for name, value in changes.items() if name != "to"}}
    new = NewReminder(
        reminder_id="rem", fields=wanted, targets=[{"id": "a", "to": changes.get("to", "1")}], created_by="user"
    )
    judged = judge(new, NOW)
    assert isinstance(judged, Faulty)
    assert judged.sentences == (f"{'targets[0].' if 'to' in changes else ''}{sentence}.",)


def test_a_reminder_takes_nothing_sealed() -> None:
    fields = {"accountId": "shop", "timezone": "UTC", "schedule": {"type": "once", "at": NOW}}
    sealed = {"type": "sealed", "keyVersion": 1, "ciphertext": "AQ"}
    new = NewReminder(
        reminder_id="rem", fields={**fields, "parts": [sealed]}, targets=[{"id": "a", "to": "1"}], created_by="user"
    )
    judged = judge(new, NOW)
    assert isinstance(judged, Faulty)
    assert judged.sentences == (f"parts[0] {faults.SEALED_IN_A_RUN}.",)
