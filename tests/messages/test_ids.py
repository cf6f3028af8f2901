"""The rules for ids: the same in Python as in firestore.rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firestore_outbox.lane.ref import conversation_lane
from firestore_outbox.messages.address import is_address
from firestore_outbox.messages.ids import (
    account_of,
    is_account_id,
    is_document_id,
    is_reminder_id,
    is_request_id,
    recipient_of,
)

RULES = (Path(__file__).parents[2] / "firestore.rules").read_text(encoding="utf-8")
NO_DOCUMENT = {".", "..", "*"}
"""The security rules do not refuse these accounts: none of them exists."""

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(alphabet="ab_-/. \n*", max_size=12),
    st.sampled_from(["a", "é", "-", "_"]).flatmap(lambda one: st.integers(1, 300).map(lambda times: one * times)),
)


def rule(name: str) -> Callable[[str], bool]:
    """The function of that name in firestore.rules: every `matches` that must hold, and none that must not."""
    body = re.search(rf"function {name}\(value\) {{(.*?)}}\s", RULES, re.DOTALL)
    assert body is not None
    patterns = [
        (negated == "!", re.compile(text.replace("\\\\", "\\"), re.ASCII))
        for negated, text in re.findall(r"(!?)value\.matches\('([^']*)'\)", body[1])
    ]
    assert patterns
    return lambda text: all((pattern.fullmatch(text) is None) == negated for negated, pattern in patterns)


@given(TEXTS)
@example("x" * 128)
@example("x" * 129)
@example("x" * 8)
@example("x" * 7)
def test_a_request_id_is_what_the_security_rules_take_and_firestore_can_store(text: str) -> None:
    assert is_request_id(text) == (rule("isRequestId")(text) and is_document_id(text))


@given(TEXTS)
@example("*")
@example("..")
@example("a\n")
@example("x" * 129)
def test_an_account_id_is_what_the_security_rules_take_and_an_account_can_have(text: str) -> None:
    assert is_account_id(text) == (rule("isAccountId")(text) and text not in NO_DOCUMENT)


@given(st.text(st.characters(max_codepoint=127), max_size=300))
@example("_a")
@example("a\n")
def test_an_address_is_what_the_security_rules_take(text: str) -> None:
    assert is_address(text) == rule("isAddress")(text) or any(separator in text for separator in "\v\x1c\x1d\x1e\x1f")


@given(TEXTS, TEXTS)
@example("a_", "x")
def test_the_account_of_a_thread_is_found_as_the_security_rules_find_it(account_id: str, to: str) -> None:
    thread_id = f"{account_id}__{to}"
    assert account_of(thread_id) == re.sub(r"(?s)__[^_].*", "", thread_id, count=1)
    if is_account_id(account_id) and is_address(to):
        assert (account_of(thread_id), recipient_of(thread_id)) == (account_id, to)


def test_the_lane_of_a_conversation_knows_an_account_that_ends_with_an_underscore() -> None:
    assert conversation_lane("shop___491701").account_id == "shop_"


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "__x__", "____", "é" * 751, "\ud800"])
def test_firestore_takes_no_document_of_this_name(text: str) -> None:
    assert not is_document_id(text)


@pytest.mark.parametrize("text", ["a", "...", "__x", "x__", "é" * 750, "a b"])
def test_firestore_takes_a_document_of_this_name(text: str) -> None:
    assert is_document_id(text)


@pytest.mark.parametrize(("text", "is_one"), [("a", True), ("9-_", True), ("x" * 100, True), ("x" * 101, False)])
def test_a_reminder_id_has_1_to_100_characters(text: str, is_one: bool) -> None:
    assert is_reminder_id(text) is is_one


@pytest.mark.parametrize("text", ["", "-a", "_a", "a/b", "a\n", "ä"])
def test_a_reminder_id_begins_with_a_letter_or_a_digit_and_goes_on_in_ascii(text: str) -> None:
    assert not is_reminder_id(text)
