"""WAHA's sessions: up and down, and linked to a phone."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx

from firestore_outbox.providers.answers import json_object
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import AuthFailed, Outcome, Unknown
from firestore_outbox.providers.protocol import PairingCode, SessionState
from firestore_outbox.providers.waha.answers import outcome_of
from firestore_outbox.providers.waha.codes import SESSION_STATES, is_of_a_session
from firestore_outbox.providers.waha.gateway import gateway_of

EVENTS = ("message", "message.ack", "message.ack.group", "session.status")
"""What a session's webhook reports."""
LONGEST_CODE = 4_096


class WahaSessions:
    """Start and stop are idempotent at WAHA's side."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def state(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        answer = await self._http.get(gateway.session_url, headers=gateway.headers, limit=limit)
        return _session_state(answer, None)

    async def start(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        return await self._order(account_id, credentials, "start", SessionState.STARTING, limit)

    async def stop(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        return await self._order(account_id, credentials, "stop", SessionState.DOWN, limit)

    async def _order(
        self, account_id: str, credentials: Credentials, verb: str, otherwise: SessionState, limit: timedelta
    ) -> SessionState | Outcome:
        """`otherwise` is the state after an answer that names none."""
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        answer = await self._http.post(
            f"{gateway.session_url}/{verb}", headers=gateway.headers, content=b"{}", limit=limit
        )
        return _session_state(answer, otherwise)


class WahaPairing:
    """A session is made stopped, and started when its webhook is right: no event of it goes elsewhere."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._sessions = WahaSessions(http)

    async def create(
        self, account_id: str, credentials: Credentials, *, webhook: str, limit: timedelta
    ) -> SessionState | Outcome:
        gateway, secret = gateway_of(account_id, credentials), credentials.get(WEBHOOK_SECRET)
        if isinstance(gateway, AuthFailed):
            return gateway
        if not secret:
            return AuthFailed(detail=f"the account has no {WEBHOOK_SECRET}")
        config = {"webhooks": [{"url": webhook, "events": list(EVENTS), "hmac": {"key": secret}}]}
        body = json.dumps({"name": gateway.session, "start": False, "config": config}).encode()
        # A PUT corrects the session that is there, also after a rotation of the secret; a POST makes one.
        answer = await self._http.put(gateway.session_url, headers=gateway.headers, content=body, limit=limit)
        if isinstance(answer, httpx.Response) and answer.status_code == 404:
            url = f"{gateway.base_url}/api/sessions"
            answer = await self._http.post(url, headers=gateway.headers, content=body, limit=limit)
        if not isinstance(answer, httpx.Response):
            return answer
        if not answer.is_success:
            return outcome_of(answer)
        return await self._sessions.start(account_id, credentials, limit=limit)

    async def code(
        self, account_id: str, credentials: Credentials, *, limit: timedelta
    ) -> PairingCode | SessionState | Outcome:
        state = await self._sessions.state(account_id, credentials, limit=limit)
        gateway = gateway_of(account_id, credentials)
        if state is not SessionState.NEEDS_PAIRING or isinstance(gateway, AuthFailed):
            return state
        url = f"{gateway.base_url}/api/{gateway.session}/auth/qr?format=raw"
        answer = await self._http.get(url, headers=gateway.headers, limit=limit)
        code = json_object(answer).get("value") if isinstance(answer, httpx.Response) and answer.is_success else None
        is_code = isinstance(code, str) and 0 < len(code) <= LONGEST_CODE
        return PairingCode(str(code)) if is_code else SessionState.NEEDS_PAIRING

    async def logout(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        answer = await self._http.post(
            f"{gateway.session_url}/logout", headers=gateway.headers, content=b"{}", limit=limit
        )
        return _session_state(answer, SessionState.DOWN)


def _session_state(answer: httpx.Response | Outcome, otherwise: SessionState | None) -> SessionState | Outcome:
    if not isinstance(answer, httpx.Response):
        return answer
    body = json_object(answer)
    if answer.is_success:
        named = body.get("status")
        state = SESSION_STATES.get(named, otherwise) if isinstance(named, str) else otherwise
        return state or Unknown(detail=f"{answer.status_code} with an answer that names no status of the session")
    if answer.status_code == 404 and is_of_a_session(body):
        return SessionState.NEEDS_PAIRING  # it does not exist yet
    return outcome_of(answer)
