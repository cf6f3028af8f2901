"""An access token for one of Google's REST APIs, from the credentials at hand: on Cloud Run those of the instance."""

from __future__ import annotations

import asyncio
from typing import Any


class AccessToken:
    """`await AccessToken(scope)()`. google-auth is imported by the first call, which most processes never make."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._credentials: Any = None

    async def __call__(self) -> str:
        """Raises google.auth.exceptions.GoogleAuthError."""
        return str(await asyncio.to_thread(self._fresh))

    def _fresh(self) -> Any:
        import google.auth
        from google.auth.transport.requests import Request

        if self._credentials is None:
            self._credentials, _ = google.auth.default(scopes=[self._scope])
        if not self._credentials.valid:
            self._credentials.refresh(Request())
        return self._credentials.token
