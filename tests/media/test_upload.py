"""Who may upload a file, and for how long an answer holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.media.upload import (
    KEEP_UNUSED,
    PAUSE,
    REFUSAL_LASTS,
    SKEW,
    Busy,
    Failure,
    Free,
    Ready,
    Refused,
    Upload,
    claimed,
    look,
    time_for,
)
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Postponed,
    Rejected,
    Retryable,
    Scope,
    Throttled,
    Unknown,
)
from tests.builders import NOW, at, s

DAYS_30 = timedelta(days=30)
PASSING: list[Failure] = [
    Throttled(scope=Scope.ACCOUNT, detail="slow down"),
    Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="no connection"),
    Postponed(code=ErrorCode.PROVIDER_UNAVAILABLE, detail="not now", retry_after=PAUSE),
    NotConnected(detail="session down"),
    Unknown(detail="no answer"),
]


def claim(
    upload: Upload | None = None, *, seconds: float = 0, refused: str | None = None, size: int = 5_000_000
) -> Upload:
    return claimed(upload, provider="p", refused=refused, owner="w1", now=at(seconds), size_bytes=size)


def ready(handle: str = "h1", *, seconds: float = 0, lasts: timedelta | None = DAYS_30) -> Upload:
    return claim().done(handle, expires_at=None if lasts is None else at(seconds) + lasts, now=at(seconds))


def seen(upload: Upload | None, seconds: float = 0, *, refused: str | None = None, provider: str = "p") -> object:
    return look(upload, provider=provider, refused=refused, now=at(seconds))


# --- one uploader


def test_a_file_that_was_not_uploaded_is_free() -> None:
    assert seen(None) == Free()


def test_while_one_worker_uploads_the_others_wait_and_after_the_lease_any_may() -> None:
    held = claim(size=5_000_000)
    until = NOW + s(25) + SKEW
    assert held.lease_until == until
    assert seen(held, 29.9) == Busy(until)
    assert seen(held, 30) == Free()


@given(st.integers(min_value=0, max_value=200_000_000))
def test_an_upload_ends_before_its_lease_does_by_the_difference_of_two_clocks(size: int) -> None:
    held = claim(size=size)
    assert held.lease_until is not None
    assert held.lease_until - (NOW + time_for(size)) == SKEW


def test_each_claim_has_a_number_of_its_own() -> None:
    first = claim()
    second = claim(first, seconds=60)
    assert (first.attempts, second.attempts) == (1, 2)
    assert first.is_claim_of("w1", 1)
    assert not second.is_claim_of("w1", 1)
    assert not first.is_claim_of("w2", 1)


# --- a handle


def test_a_handle_is_used_until_an_hour_before_it_expires() -> None:
    good_until = NOW + DAYS_30 - timedelta(hours=1)
    assert seen(ready()) == Ready("h1", good_until)
    assert look(ready(), provider="p", refused=None, now=good_until) == Free()


def test_of_a_short_life_the_last_tenth_is_left_alone() -> None:
    assert seen(ready(lasts=s(100)), 89.9) == Ready("h1", at(90))
    assert seen(ready(lasts=s(100)), 90) == Free()


def test_a_handle_that_never_expires_is_good_for_ever() -> None:
    upload = ready(lasts=None)
    assert look(upload, provider="p", refused=None, now=NOW + timedelta(days=3650)) == Ready("h1", None)
    assert upload.expire_at is None


def test_a_handle_of_another_provider_is_worth_nothing() -> None:
    assert seen(ready(), provider="q") == Free()
    taken = claimed(ready(), provider="q", refused="h1", owner="w1", now=NOW, size_bytes=1)
    assert (taken.provider, taken.handle, taken.replaced_at) == ("q", None, None)


# --- refused by the provider


def test_a_refused_handle_is_replaced_once_and_another_one_is_used_as_it_is() -> None:
    first = ready("h1")
    assert seen(first, refused="h1") == Free()
    second = claim(first, refused="h1").done("h2", expires_at=None, now=NOW)
    assert seen(second, refused="h1") == Ready("h2", None)


def test_a_handle_that_replaced_a_refused_one_and_is_refused_too_is_not_replaced_for_a_while() -> None:
    second = claim(ready("h1"), refused="h1").done("h2", expires_at=None, now=at(3))
    refused = seen(second, 5, refused="h2")
    assert isinstance(refused, Refused)
    assert refused.because.code is ErrorCode.MEDIA_MISSING
    assert refused.until == NOW + REFUSAL_LASTS
    assert seen(second, REFUSAL_LASTS.total_seconds(), refused="h2") == Free()


def test_a_handle_that_replaced_an_expired_one_may_be_replaced_when_it_is_refused() -> None:
    renewed = claim(ready("h1", lasts=s(100)), seconds=95).done("h2", expires_at=None, now=at(96))
    assert seen(renewed, 97, refused="h2") == Free()


# --- what went wrong


def test_what_was_refused_for_good_is_not_uploaded_again_before_ten_minutes() -> None:
    upload = claim().failed(Rejected(code=ErrorCode.REJECTED, detail="no such type"), now=at(2))
    refused = Rejected(code=ErrorCode.REJECTED, detail="no such type")
    assert seen(upload, 3) == Refused(refused, at(2) + REFUSAL_LASTS)
    assert seen(upload, 2 + REFUSAL_LASTS.total_seconds()) == Free()


@pytest.mark.parametrize("failure", PASSING, ids=lambda failure: type(failure).__name__)
def test_after_a_trouble_that_passes_no_worker_uploads_for_a_moment(failure: Failure) -> None:
    upload = claim().failed(failure, now=at(2))
    assert upload.lease_until is None
    assert seen(upload, 3) == Busy(at(2) + PAUSE)
    assert seen(upload, 4) == Free()


def test_a_provider_that_names_a_time_is_obeyed_but_not_for_hours() -> None:
    def wait(seconds: float) -> object:
        failure = Throttled(scope=Scope.APP, detail="", retry_after=s(seconds))
        return seen(claim().failed(failure, now=NOW))

    assert wait(30) == Busy(at(30))
    assert wait(86_400) == Busy(NOW + REFUSAL_LASTS)


def test_refused_credentials_make_no_worker_wait_since_a_person_corrects_them() -> None:
    assert seen(claim().failed(AuthFailed(detail="revoked"), now=NOW)) == Free()


@pytest.mark.parametrize("failure", PASSING, ids=lambda failure: type(failure).__name__)
def test_a_success_leaves_nothing_of_the_failures_before_it(failure: Failure) -> None:
    upload = claim(claim().failed(failure, now=NOW), seconds=10).done("h1", expires_at=None, now=at(11))
    assert upload == Upload(provider="p", attempts=2, handle="h1", uploaded_at=at(11))


# --- and what is left over


def test_a_document_is_deleted_when_its_handle_has_expired_or_was_not_used_for_a_week() -> None:
    assert ready().expire_at == NOW + DAYS_30
    assert claim(size=0).expire_at == NOW + s(20) + SKEW + KEEP_UNUSED
    assert claim().failed(Unknown(detail=""), now=NOW).expire_at == NOW + PAUSE + KEEP_UNUSED
