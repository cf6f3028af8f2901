"""A provider's words, without what it quotes of our call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.messages.model import MediaPart, TemplatePart, TextPart
from firestore_outbox.providers.answers import LONGEST_DETAIL
from firestore_outbox.providers.redaction import BLANK, PIECE, SHORTEST, redacted, written_in

LONG = "Dear Asha, your appointment with Dr. Rao is on Friday at ten o'clock"


def test_words_that_quote_nothing_stay_as_they_are() -> None:
    assert redacted("Template does not exist", ("s3cret", LONG)) == "Template does not exist"


def test_secrets_and_texts_are_blanked_out() -> None:
    words = f"cannot send '{LONG}' with key s3cret"
    assert redacted(words, ("s3cret", LONG)) == f"cannot send '{BLANK}' with key {BLANK}"


@pytest.mark.parametrize("form", [json.dumps("ja\nnein äö"), json.dumps("ja\nnein äö", ensure_ascii=False)])
def test_a_text_that_is_quoted_as_json_is_found_too(form: str) -> None:
    assert redacted(f"bad body: {form}", ("ja\nnein äö",)) == f'bad body: "{BLANK}"'


def test_a_quotation_that_was_cut_short_is_found_by_its_pieces() -> None:
    assert redacted(f"too long: {LONG[:30]}", (LONG,)) == f"too long: {BLANK}{LONG[24:30]}"


def test_a_text_is_blanked_out_before_the_words_are_cut() -> None:
    words = "x" * (LONGEST_DETAIL - 10) + LONG
    assert redacted(words, (LONG,)) == "x" * (LONGEST_DETAIL - 10) + BLANK


def test_texts_too_short_to_tell_anything_stay() -> None:
    assert redacted("bodyValues 1 of 2", ("1", "2", "of")) == "bodyValues 1 of 2"


def test_all_that_people_wrote_in_a_part_is_known() -> None:
    assert written_in(TextPart(type="text", text="hello")) == ("hello",)
    template = TemplatePart(type="template", name="otp", language="en", params=("Asha", "1234"))
    assert written_in(template) == ("Asha", "1234")
    media = MediaPart(type="media", mediaId="m-1", mimeType="image/png", caption="look", filename="me.png")
    assert written_in(media) == ("look", "me.png")


@given(st.text(min_size=SHORTEST), st.text(), st.text())
def test_whatever_is_hidden_is_not_in_the_words(hidden: str, before: str, after: str) -> None:
    if BLANK not in hidden:
        assert hidden not in redacted(before + hidden + after, (hidden,))


@given(st.text(alphabet="abcdefgh ", min_size=60, max_size=120), st.integers(0, 30), st.integers(2 * PIECE, 50))
def test_no_quotation_of_two_pieces_or_more_survives(text: str, start: int, length: int) -> None:
    quoted = text[start : start + length]
    assert quoted not in redacted(f"[{quoted}]", (text,))
