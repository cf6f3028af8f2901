"""Adapters of installed packages, found by their entry points.

A package names a factory in its pyproject.toml:

    [project.entry-points."firestore_outbox.providers"]
    acme = "acme_outbox:provider"

The factory takes `ProviderTools` and returns a `Provider`; accounts with `provider: acme` then use it. The name of the
entry point must be the provider's name, and not that of a built-in provider: otherwise an installed package could take
over the messages of other accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from firestore_outbox.clock import Clock
from firestore_outbox.errors import OutboxError
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.parts import PartSender
from firestore_outbox.providers.protocol import Provider

GROUP = "firestore_outbox.providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTools:
    """What an adapter is built with."""

    http: Http
    """HTTP calls with pooled connections. They return a response, or the outcome of a call that failed."""
    parts: PartSender
    """Sends the parts of one message one after another, with short random pauses. Calls your function for each part."""
    clock: Clock
    """Returns the current time."""


class BadAdapter(OutboxError):
    """An installed adapter cannot be used. The message names its package and the fault."""


def installed(tools: ProviderTools, built_in: Collection[str]) -> Iterator[Provider]:
    """The adapters of installed packages, in the order of their names."""
    yield from adapters(_installed_points(), tools, built_in)


@cache
def _installed_points() -> tuple[EntryPoint, ...]:
    """Once for each process: finding them reads a file of every installed package."""
    return tuple(entry_points(group=GROUP))


def adapters(points: Iterable[EntryPoint], tools: ProviderTools, built_in: Collection[str]) -> Iterator[Provider]:
    seen: set[str] = set()
    for point in sorted(points, key=lambda point: point.name):
        where = f"the entry point {point.name!r} ({point.value})"
        if point.name in built_in or point.name in seen:
            raise BadAdapter(f"{where} has the name of another provider; give it a name of its own")
        seen.add(point.name)
        yield _built(point, where, tools)


def _built(point: EntryPoint, where: str, tools: ProviderTools) -> Provider:
    try:
        factory: Callable[[ProviderTools], object] = point.load()
        provider = factory(tools)
    except Exception as error:
        raise BadAdapter(f"{where} failed: {type(error).__name__}: {error}") from error
    if not isinstance(provider, Provider):
        raise BadAdapter(f"{where} returned a {type(provider).__name__}; it must return a firestore_outbox.Provider")
    if provider.name != point.name:
        raise BadAdapter(f"{where} returned a provider named {provider.name!r}; the two names must agree")
    return provider
