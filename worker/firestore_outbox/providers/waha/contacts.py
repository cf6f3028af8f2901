"""The contacts that a WAHA session knows, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx

from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import AuthFailed, Outcome, Unknown
from firestore_outbox.providers.protocol import Contact, ContactsPage
from firestore_outbox.providers.reading import cleaned
from firestore_outbox.providers.waha.answers import outcome_of
from firestore_outbox.providers.waha.gateway import gateway_of
from firestore_outbox.providers.waha.ids import address_of

PAGE = 100
LONGEST_NAME = 200
LONGEST_URL = 2_000


class WahaContacts:
    def __init__(self, http: Http) -> None:
        self._http = http

    async def page(
        self, account_id: str, credentials: Credentials, *, offset: int, limit: timedelta
    ) -> ContactsPage | Outcome:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        query = f"session={gateway.session}&limit={PAGE}&offset={offset}&sortBy=id&sortOrder=asc"
        url = f"{gateway.base_url}/api/contacts/all?{query}"
        answer = await self._http.get(url, headers=gateway.headers, limit=limit)
        if not isinstance(answer, httpx.Response):
            return answer
        if not answer.is_success:
            return outcome_of(answer)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, list):
            return Unknown(detail=f"{answer.status_code} with an answer that is no list of contacts")
        contacts = tuple(contact for one in found if (contact := _contact(one)) is not None)
        return ContactsPage(contacts=contacts, next_offset=offset + PAGE if len(found) >= PAGE else None)


def _contact(one: Any) -> Contact | None:
    """None: it has no address that a message could go to."""
    identity = one.get("id") if isinstance(one, dict) else None
    address = address_of(identity) if isinstance(identity, str) else None
    if address is None or len(address) > 256:
        return None
    picture = one.get("profilePictureURL")
    is_url = isinstance(picture, str) and picture.startswith("https://") and len(picture) <= LONGEST_URL
    return Contact(
        address=address,
        name=_name(one, "name"),
        push_name=_name(one, "pushname"),
        picture=str(picture) if is_url else None,
    )


def _name(one: Mapping[str, Any], field: str) -> str | None:
    value = one.get(field)
    return cleaned(value)[:LONGEST_NAME].strip() or None if isinstance(value, str) else None
