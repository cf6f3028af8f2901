"""What forms say, and what a reminder's form means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from firestore_outbox.accounts.changes import SETTABLE
from firestore_outbox.web.console.drafts import DEFAULTS, NO_WHEN, Draft, draft_of, written
from firestore_outbox.web.console.forms import form_of
from firestore_outbox.web.console.pages.account_changes import HINTS, value_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASKED = {"targets": "+491511234567", "text": "Hello", "timezone": "Europe/Berlin", "at": "2026-07-01T09:00"}
FILLED = {**DEFAULTS, **ASKED}
BODY = (
    b'--xyz\r\nContent-Disposition: form-data; name="text"\r\n\r\nHello\r\nthere\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\n'
    b"\xef\xbb\xbfto\r\n+49151\r\n\r\n--xyz--\r\n"
)


def draft(**changes: str) -> Draft | tuple[str, ...]:
    return draft_of("shop", {**FILLED, **changes}, NOW)


def test_a_form_with_a_file_is_read() -> None:
    form = form_of(BODY, "multipart/form-data; boundary=xyz")
    assert form == {"text": "Hello\r\nthere", "file": "to\r\n+49151\r\n"}


def test_a_form_of_fields_is_read_and_what_is_no_form_is_empty() -> None:
    assert form_of(b"a=1&b=%2B2") == {"a": "1", "b": "+2"}
    assert form_of(b"\xff\xfe") == {}
    assert form_of(BODY, "multipart/form-data") == form_of(BODY)
    assert form_of(b"--xyz", "multipart/form-data; boundary=xyz") == {}


def test_a_file_replaces_the_targets_in_the_field() -> None:
    assert written({"targets": "+491", "file": "+492"})["targets"] == "+492"
    assert written({"targets": "+491", "file": ""})["targets"] == "+491"


def test_a_local_time_is_meant_in_the_zone_of_the_form() -> None:
    found = draft()
    assert isinstance(found, Draft)
    assert found.fields["schedule"] == {"type": "once", "at": datetime(2026, 7, 1, 7, tzinfo=UTC)}
    assert found.fields["window"] == {"startHour": 6, "endHour": 18}


def test_a_template_a_file_and_a_text_become_parts_in_this_order() -> None:
    found = draft(template="hi", params="{name}\n\nBerlin", media="m1")
    assert isinstance(found, Draft)
    assert [part["type"] for part in found.fields["parts"]] == ["template", "media", "text"]
    assert found.fields["parts"][0]["params"] == ["{name}", "Berlin"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"targets": ""}, "Targets, line 1: the file has no targets."),
        ({"text": " "}, "Message: write a text, or name a template or a file."),
        ({"timezone": "Mars/Base"}, "Time zone: it"),
        ({"start": "6.5"}, "Delivery hours: '6.5' to '18' must be whole hours."),
        ({"at": "tomorrow"}, NO_WHEN),
    ],
)
def test_what_cannot_be_understood_is_said_in_words(changes: dict[str, str], sentence: str) -> None:
    found = draft(**changes)
    assert isinstance(found, tuple)
    assert len(found) == 1
    assert found[0].startswith(sentence)


def test_every_setting_has_words_and_an_empty_field_brings_the_default_back() -> None:
    assert set(HINTS) == set(SETTABLE)
    assert [value_of(text) for text in ("", " 20 ", "1.5", "UTC", '["de"]', "true")] == [
        None,
        20,
        1.5,
        "UTC",
        ["de"],
        True,
    ]
