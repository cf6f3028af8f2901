"""Which hot set an account belongs to: the set of its gateway, or the default one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from firestore_outbox.sessions.layout import Layout

ServerOf = Callable[[str], Awaitable[str]]
"""account -> HOST:PORT of the gateway where its session is; empty if it has none."""


async def _no_server(account_id: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Constant."""

    default: Layout = field(default_factory=Layout)
    by_gateway: Mapping[str, Layout] = field(default_factory=dict)
    """By HOST:PORT."""
    server_of: ServerOf = _no_server

    async def of(self, account_id: str) -> Layout:
        """Without sets for single gateways no credentials are read."""
        if not self.by_gateway:
            return self.default
        return self.by_gateway.get(await self.server_of(account_id), self.default)

    @property
    def all(self) -> list[Layout]:
        return [self.default, *self.by_gateway.values()]


ONE_SET = Sets()
