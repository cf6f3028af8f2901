"""The decision of the migration `provider-number`, document by document."""

from __future__ import annotations

from typing import Any

import pytest

from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.operations.migrations.decision import Change, Decision, Document, Keep, Undecided
from firestore_outbox.operations.migrations.provider_number import back, forward
from firestore_outbox.providers.credentials import Credentials


def shop(fields: dict[str, Any], **secrets: str) -> Document:
    return Document(path="accounts/shop", fields=fields, credentials=Credentials(secrets))


CASES: dict[str, tuple[Document, Decision]] = {
    "a number": (shop({"provider": "whatsapp_cloud"}, phoneNumberId=" 1055 "), Change({"providerNumber": "1055"})),
    "a number that stands for the account": (
        shop({"provider": "whatsapp_cloud"}, phoneNumberId="{accountId}"),
        Change({"providerNumber": "shop"}),
    ),
    "a session": (shop({"provider": "waha"}, session="till-1"), Change({"providerNumber": "till-1"})),
    "the usual session": (shop({"provider": "waha"}, apiKey="k"), Change({"providerNumber": "default"})),
    "a number that is there": (
        shop({"provider": "whatsapp_cloud", "providerNumber": "7"}, phoneNumberId="1055"),
        Keep(),
    ),
    "a provider without numbers": (shop({"provider": "simulated"}, token="t"), Keep()),
    "a document that makes no sense": (shop({"provider": 7}), Keep()),
}


@pytest.mark.parametrize("case", CASES)
def test_an_account_gets_the_number_that_its_credentials_have(case: str) -> None:
    document, decision = CASES[case]
    assert forward(document) == decision


@pytest.mark.parametrize("provider", ["whatsapp_cloud", "waha"])
def test_an_account_without_credentials_is_left_to_a_person(provider: str) -> None:
    decision = forward(shop({"provider": provider}))
    assert isinstance(decision, Undecided)
    assert "outbox accounts add --replace" in decision.because


@pytest.mark.parametrize("case", [case for case, (_, decision) in CASES.items() if isinstance(decision, Change)])
def test_the_way_back_removes_what_the_way_forward_added(case: str) -> None:
    document, decision = CASES[case]
    assert isinstance(decision, Change)
    after = Document(
        path=document.path, fields={**document.fields, **decision.fields}, credentials=document.credentials
    )
    assert forward(after) == Keep(), "a second run changes nothing"
    assert back(after) == Change({"providerNumber": DELETE})
    assert back(document) == Keep()


def test_the_way_back_leaves_a_number_that_a_person_chose() -> None:
    chosen = {"provider": "whatsapp_cloud", "providerNumber": "7"}
    assert back(shop(chosen, phoneNumberId="1055")) == Keep()
