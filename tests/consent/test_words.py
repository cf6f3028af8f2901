"""Words with which people opt out of runs, and of none of their other messages."""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.consent.words import DEFAULT, IN, OUT, Wish, forms_of, key_of, wish_in, words_of


@pytest.mark.parametrize(
    "text", ["stop", "STOP", " Stop! ", "stop.", "*STOP*", "Abmelden", "Berhenti", "退订", "opt  out"]
)
def test_a_message_that_is_the_word_alone_opts_out(text: str) -> None:
    assert wish_in(text) is Wish.OUT


@pytest.mark.parametrize("text", ["stop by at nine", "please don't stop", "", "  ", "bus stop", "s t o p", "x" * 5_000])
def test_a_message_about_something_else_does_not(text: str) -> None:
    assert wish_in(text) is None


@pytest.mark.parametrize("text", ["start", "START", "unstop", "Mula"])
def test_a_person_comes_back_with_a_word(text: str) -> None:
    assert wish_in(text) is Wish.IN


def test_no_word_means_both() -> None:
    outs, ins = frozenset().union(*OUT.values()), frozenset().union(*IN.values())
    assert not outs & ins
    assert all(wish_in(word) is Wish.OUT for word in outs)
    assert all(wish_in(word) is Wish.IN for word in ins)


def test_an_account_chooses_languages_and_has_words_of_its_own() -> None:
    german = words_of({"languages": ["de"], "words": ["Keine Post"]})
    assert wish_in("keine post!", german) is Wish.OUT
    assert wish_in("abmelden", german) is Wish.OUT
    assert wish_in("unsubscribe", german) is None
    assert wish_in("stop", german) is Wish.OUT, "it counts in every language"
    assert wish_in("stop", words_of({"off": True})) is None


@pytest.mark.parametrize("raw", [None, 7, [], "x", {}, {"languages": 7, "words": {}}])
def test_malformed_settings_are_as_if_they_were_absent(raw: Any) -> None:
    assert words_of(raw) == DEFAULT


def test_a_phone_number_is_the_same_in_every_way_to_write_it() -> None:
    forms = ["+491511234567", "491511234567", "491511234567@c.us", "491511234567@s.whatsapp.net"]
    assert {key_of(one) for one in forms} == {"491511234567"}
    assert {*forms_of(forms[0])} == {*forms}
    assert forms_of("1203@g.us") == ("1203@g.us",)
