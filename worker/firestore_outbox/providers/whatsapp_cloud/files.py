"""Files that people sent to a WhatsApp Cloud number: Meta names an address for each, which is good for minutes.

The token goes with the second call, so it is made to Meta's own hosts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import quote, urlsplit

import httpx

from firestore_outbox.providers.answers import json_object
from firestore_outbox.providers.http import Http, retry_after
from firestore_outbox.providers.outcome import AuthFailed, ErrorCode, Outcome, Rejected, Retryable
from firestore_outbox.providers.protocol import InboundFile

HOSTS = ("fbsbx.com", "fbcdn.net", "whatsapp.net")
_REFUSED = frozenset({400, 403, 404, 410})


async def fetched(
    http: Http, base_url: str, headers: Mapping[str, str], media_id: str, *, most_bytes: int, limit: timedelta
) -> InboundFile | Outcome:
    about = await http.get(f"{base_url}/{quote(media_id, safe='')}", headers=headers, limit=limit)
    if not isinstance(about, httpx.Response):
        return about
    if not about.is_success:
        return _refused(about)
    url = json_object(about).get("url")
    if not isinstance(url, str) or not is_metas(url, base_url):
        return Rejected(code=ErrorCode.MEDIA_MISSING, detail="the file's address is not one of Meta's")
    answer = await http.download(url, headers=headers, most_bytes=most_bytes, limit=limit)
    if not isinstance(answer, httpx.Response):
        return answer
    return InboundFile(content=answer.content) if answer.is_success else _refused(answer)


def is_metas(url: str, base_url: str) -> bool:
    """By https at a host of Meta's, or where the API itself is."""
    try:
        parts, own = urlsplit(url), urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if (parts.scheme, host, port) == (own.scheme, own.hostname, own.port):
        return True
    return parts.scheme == "https" and port in (None, 443) and any(host == o or host.endswith(f".{o}") for o in HOSTS)


def _refused(answer: httpx.Response) -> Outcome:
    if answer.status_code == 401:
        return AuthFailed(detail="the token may not read files")
    if answer.status_code in _REFUSED:
        return Rejected(code=ErrorCode.MEDIA_MISSING, detail=f"the file is not there ({answer.status_code})")
    return Retryable(
        code=ErrorCode.PROVIDER_UNAVAILABLE,
        detail=f"the file was not given ({answer.status_code})",
        retry_after=retry_after(answer.headers),
    )
