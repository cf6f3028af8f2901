"""What codes are called on the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.accounts.changes import SETTABLE
from firestore_outbox.providers.outcome import ErrorCode
from firestore_outbox.web.console.pages import DEEDS
from firestore_outbox.web.console.words import (
    ACTIONS,
    CAUSES,
    LONGEST_PREVIEW,
    SETTINGS,
    on_a_page,
    preview,
    shown_time,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_cause_action_and_setting_that_a_page_shows_has_words() -> None:
    assert set(CAUSES) == set(ErrorCode)
    assert {deed.action for deed in DEEDS} - set(ACTIONS) == {"reminder.check"}, "which only shows, and is not logged"
    assert set(SETTABLE) <= set(SETTINGS)


def test_a_time_is_shown_on_the_clock_of_the_page_with_its_year_if_it_is_another() -> None:
    assert shown_time(NOW, BERLIN, NOW) == "01 Mar, 13:00:00"
    assert shown_time(NOW.replace(year=2090), BERLIN, NOW) == "01 Mar 2090, 13:00:00"
    assert shown_time(None, BERLIN, NOW) == ""


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("The next is at 2026-03-01 12:00:00 UTC.", "The next is at 01 Mar, 13:00:00."),
        ("It failed (provider_unavailable); wait.", "It failed (the provider is unavailable); wait."),
        ("provider_timeout: no answer", "The provider did not answer in time: no answer"),
        ("It was rejected.", "It was rejected."),
        ("An operator resumes it: outbox runs resume run-1", "An operator resumes it."),
    ],
)
def test_a_sentence_of_the_command_line_has_neither_codes_nor_commands_on_a_page(sentence: str, shown: str) -> None:
    assert on_a_page(sentence, BERLIN, NOW) == shown


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([{"type": "text", "text": "Hello\n  Ann"}], "Hello Ann"),
        ([{"type": "media", "mimeType": "image/png"}], "Picture"),
        ([{"type": "media", "mimeType": "application/pdf", "caption": "Your bill"}], "Your bill"),
        ([{"type": "template", "name": "welcome"}], "Template welcome"),
        ([{"type": "sealed", "ciphertext": "x"}], "Sealed: only the account's key opens it"),
        ([{"type": "text", "text": "x" * 500}], "x" * (LONGEST_PREVIEW - 1) + "…"),
        ("broken", ""),
        (["broken", 7], ""),
    ],
)
def test_a_message_is_shown_in_one_line(parts: object, shown: str) -> None:
    assert preview(parts) == shown
