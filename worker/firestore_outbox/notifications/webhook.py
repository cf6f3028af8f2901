"""The signed POST to an account's webhook, to no place that an account's owner must not reach through the worker.

An owner chooses the URL, so it is not trusted: https alone, no credentials in it, no redirect is followed, and the
connection goes to an address that was resolved and checked here. A name that resolves to a private address is refused,
and one that changes its mind between the check and the connection gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import httpx

from firestore_outbox.notifications.notification import ID_HEADER, SIGNATURE_HEADER
from firestore_outbox.providers.signature import signed

LIMIT = timedelta(seconds=10)
"""For one attempt, from the name's resolution to the answer: less than a sixth of a lease."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port -> addresses. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The webhook answered 2xx."""


@dataclass(frozen=True, slots=True)
class NotAccepted:
    reason: str


class Webhook:
    def __init__(
        self,
        *,
        allow_private: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        """`allow_private`: http and any address, for a stack on one machine."""
        self._allow_private = allow_private
        self._transport = transport
        self._resolve = resolve or _resolved
        self._client: httpx.AsyncClient | None = None

    async def post(
        self, url: str, secret: str, notification_id: str, body: bytes, now: datetime
    ) -> Accepted | NotAccepted:
        headers = {
            "Content-Type": "application/json",
            ID_HEADER: notification_id,
            SIGNATURE_HEADER: signed(body, secret, now),
        }
        try:
            async with asyncio.timeout(LIMIT.total_seconds()):
                request = await self._request(url, headers, body)
                if isinstance(request, NotAccepted):
                    return request
                answer = await self._http().send(request, stream=True)  # its body is not read, whatever its size
                await answer.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            return NotAccepted(f"the webhook did not answer ({type(error).__name__})")
        return Accepted() if answer.is_success else NotAccepted(f"the webhook answered {answer.status_code}")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _request(self, url: str, headers: dict[str, str], body: bytes) -> httpx.Request | NotAccepted:
        parsed = httpx.URL(url)
        if self._allow_private:
            return self._http().build_request("POST", parsed, headers=headers, content=body)
        if parsed.scheme != "https" or parsed.userinfo:
            return NotAccepted("the webhook's URL must begin with https:// and have no user in it")
        addresses = await self._resolve(parsed.host, parsed.port or 443)
        if not addresses or not all(is_public(address) for address in addresses):
            return NotAccepted("the webhook's host has a private address, or none")
        host = parsed.netloc.decode("ascii")
        pinned = parsed.copy_with(host=addresses[0])
        return self._http().build_request(
            "POST", pinned, headers={**headers, "Host": host}, content=body, extensions={"sni_hostname": parsed.host}
        )

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._transport, trust_env=False, follow_redirects=False, timeout=LIMIT.total_seconds()
            )
        return self._client


def is_public(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = getattr(parsed, "ipv4_mapped", None) or parsed
    return bool(inner.is_global) and not inner.is_multicast


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
