"""The tables of transitions: drawn in docs/states.md, and complete."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pytest

from firestore_outbox.media.upload import Failure, Upload, claimed, state_of
from firestore_outbox.media.upload_states import TRANSITIONS, UploadEvent, UploadState
from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, Rejected, Retryable
from firestore_outbox.transitions import IllegalTransition, after
from tests.architecture.states import MACHINES, PAGE, Machine, page

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_page_shows_the_tables_as_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make states`"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.title)
def test_every_state_can_be_reached_and_every_event_happens(machine: Machine) -> None:
    reached, before = {machine.first}, set[StrEnum]()
    while reached != before:
        before = set(reached)
        reached |= {becomes for (state, _), becomes in machine.table.items() if state in reached}
    assert reached == {*type(machine.first)}
    events: set[StrEnum] = {event for _, event in machine.table}
    assert events == {*type(min(events))}


def test_a_pair_that_a_table_does_not_have_is_an_error() -> None:
    with pytest.raises(IllegalTransition, match="no done from free"):
        after(TRANSITIONS, UploadState.FREE, UploadEvent.DONE)


# --- an upload's states are read out of its fields: the functions must agree with the table


def upload_of(before: UploadState) -> Upload | None:
    if before is UploadState.FREE:
        return None
    claim = claimed(None, provider="waha", refused=None, owner="worker-1", now=NOW, size_bytes=1)
    later = Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="busy", retry_after=timedelta(seconds=9))
    made = {
        UploadState.UPLOADING: claim,
        UploadState.READY: claim.done("handle-1", expires_at=NOW + timedelta(days=30), now=NOW),
        UploadState.WAITING: claim.failed(later, now=NOW),
        UploadState.REFUSED: claim.failed(Rejected(code=ErrorCode.REJECTED, detail="too large"), now=NOW),
    }
    return made[before]


def state(upload: Upload | None, at: datetime = NOW, refused: str | None = None) -> UploadState:
    return state_of(upload, provider="waha", refused=refused, now=at)


FAILURES: dict[UploadEvent, Failure] = {
    UploadEvent.FAIL: Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="busy"),
    UploadEvent.FAIL_AUTH: AuthFailed(detail="wrong token"),
    UploadEvent.REFUSE: Rejected(code=ErrorCode.REJECTED, detail="too large"),
}


@pytest.mark.parametrize(("before", "event"), TRANSITIONS, ids=lambda value: value.value)
def test_an_upload_moves_as_its_table_says(before: UploadState, event: UploadEvent) -> None:
    upload, long_after = upload_of(before), NOW + timedelta(days=60)
    assert state(upload) is before
    match event:
        case UploadEvent.CLAIM:
            becomes = state(claimed(upload, provider="waha", refused=None, owner="w", now=NOW, size_bytes=1))
        case UploadEvent.DONE:
            assert upload is not None
            becomes = state(upload.done("handle-2", expires_at=None, now=NOW))
        case UploadEvent.FAIL | UploadEvent.FAIL_AUTH | UploadEvent.REFUSE:
            assert upload is not None
            becomes = state(upload.failed(FAILURES[event], now=NOW))
        case UploadEvent.LEASE_ENDS | UploadEvent.WAIT_ENDS | UploadEvent.HANDLE_ENDS:
            becomes = state(upload, at=long_after)
    assert becomes is TRANSITIONS[before, event]
