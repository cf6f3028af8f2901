"""`accounts/{accountId}.providerNumber`: the number or session by which the provider knows the account.

An event of the provider names it, and finds its account by it. It is no secret, but until this release it was stored
among the account's secrets alone, where no query can look for it. An account that has the field keeps it.
"""

from __future__ import annotations

from typing import Any

from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.operations.migrations.decision import Change, Decision, Document, Keep, Migration, Undecided
from firestore_outbox.providers.waha import gateway as waha
from firestore_outbox.providers.waha.adapter import NAME as WAHA
from firestore_outbox.providers.whatsapp_cloud import adapter as whatsapp_cloud

FIELD = "providerNumber"


def forward(document: Document) -> Decision:
    if document.fields.get(FIELD):
        return Keep()
    provider = document.fields.get("provider")
    if provider == whatsapp_cloud.NAME:
        number = whatsapp_cloud.number_in(document.id, document.credentials)
        return Change({FIELD: number}) if number else _missing(whatsapp_cloud.NUMBER)
    if provider == WAHA:
        session = waha.session_in(document.id, document.credentials)
        return Change({FIELD: session}) if document.credentials.names else _missing(waha.SESSION)
    return Keep()  # events of the other providers name the account itself


def back(document: Document) -> Decision:
    """Removes what `forward` would add. A number that a person wrote, and that says something else, stays."""
    stored: Any = document.fields.get(FIELD)
    without = {name: value for name, value in document.fields.items() if name != FIELD}
    added = forward(Document(path=document.path, fields=without, credentials=document.credentials))
    return Change({FIELD: DELETE}) if isinstance(added, Change) and added.fields[FIELD] == stored else Keep()


def _missing(secret: str) -> Undecided:
    return Undecided(f"its credentials have no {secret}; outbox accounts add --replace stores them")


PROVIDER_NUMBER = Migration(
    name="provider-number",
    what="stores the number or session of each account in its document (providerNumber), for finding it by an event",
    collection="accounts",
    forward=forward,
    back=back,
    reads_credentials=True,
)
