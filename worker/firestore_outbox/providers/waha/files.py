"""Files that people sent to a WAHA session, as the gateway keeps them.

Only the account's own gateway is asked, whatever address a webhook names.
"""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import httpx

from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, Outcome, Rejected
from firestore_outbox.providers.protocol import InboundFile
from firestore_outbox.providers.waha.answers import outcome_of
from firestore_outbox.providers.waha.gateway import gateway_of

NOT_FOUND = 404


class WahaFiles:
    def __init__(self, http: Http) -> None:
        self._http = http

    async def fetch(
        self, account_id: str, credentials: Credentials, media_id: str, *, most_bytes: int, limit: timedelta
    ) -> InboundFile | Outcome:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        name = quote(media_id, safe="")
        if not name.strip("."):
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail="the gateway named no file")
        answer: httpx.Response | Outcome = Rejected(code=ErrorCode.MEDIA_MISSING, detail="the gateway has no such file")
        for path in (f"{gateway.session}/{name}", name):  # with the session's name, and as earlier versions have it
            url = f"{gateway.base_url}/api/files/{path}"
            answer = await self._http.download(
                url, headers={"X-Api-Key": gateway.api_key}, most_bytes=most_bytes, limit=limit
            )
            if not isinstance(answer, httpx.Response) or answer.status_code != NOT_FOUND:
                break
        if not isinstance(answer, httpx.Response):
            return answer
        if answer.status_code == NOT_FOUND:
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail="the gateway has no such file, or not any more")
        return InboundFile(content=answer.content) if answer.is_success else outcome_of(answer)
