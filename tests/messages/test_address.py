from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firestore_outbox.messages.address import address_of_sender, is_address, name_of_recipient
from firestore_outbox.messages.ids import account_of, thread_id_of

NAMES = st.one_of(
    st.text(min_size=1, max_size=300),
    st.text(alphabet="_%/ 5Fxh2\u00a0\n", min_size=1, max_size=12),
    st.from_regex(r"\A[_%][A-Za-z0-9_%]{0,20}\Z"),
)
ACCOUNTS = st.text(alphabet="ab_-.", min_size=1, max_size=6).filter(lambda account: "__" not in account)


@pytest.mark.parametrize("name", ["4915112345", "+4915112345", "120363@g.us", "a_b", "ann@example.com", "日本"])
def test_an_address_that_can_be_written_to_stays_as_it_is(name: str) -> None:
    assert address_of_sender(name) == name
    assert name_of_recipient(name) == name


@pytest.mark.parametrize(
    ("name", "address"),
    [("_mallory", "%5Fmallory"), ("__", "%5F_"), ("%5Fmallory", "%255Fmallory"), ("a/b c", "%61%2Fb%20c")],
)
def test_another_one_is_encoded_and_an_answer_goes_to_the_sender(name: str, address: str) -> None:
    assert address_of_sender(name) == address
    assert name_of_recipient(address) == name


@given(NAMES)
def test_every_sender_has_an_address_that_can_be_written_to(name: str) -> None:
    address = address_of_sender(name)
    assert is_address(address)


@given(NAMES, NAMES)
@example("_x", "%5Fx")
@example("%h", "_")
def test_two_senders_never_share_an_address(one: str, other: str) -> None:
    assert (address_of_sender(one) == address_of_sender(other)) == (one == other)


@given(NAMES, ACCOUNTS, NAMES, ACCOUNTS)
@example("_x", "a", "x", "a_")
def test_two_conversations_never_share_a_thread_and_a_thread_belongs_to_its_account(
    name: str, account: str, other_name: str, other_account: str
) -> None:
    thread = thread_id_of(account, address_of_sender(name))
    other = thread_id_of(other_account, address_of_sender(other_name))
    assert (thread == other) == ((name, account) == (other_name, other_account))
    assert account_of(thread) == account


@given(NAMES)
def test_an_answer_goes_to_the_sender_unless_the_name_is_too_long(name: str) -> None:
    address = address_of_sender(name)
    assert name_of_recipient(address) == (address if address.startswith("%h") else name)


@given(st.text(min_size=1, max_size=40))
def test_an_address_that_no_sender_has_is_sent_to_as_it_is(address: str) -> None:
    name = name_of_recipient(address)
    assert name == address or address_of_sender(name) == address
