"""Adapters of installed packages, found by their entry points.

A package names a factory in its pyproject.toml:

    [project.entry-points."firestore_outbox.providers"]
    acme = "acme_outbox:provider"

The factory takes `ProviderTools` and returns a `Provider`; accounts with `provider: acme` then use it. The name of the
entry point must be the provider's name, and not that of a built-in provider: otherwise an installed package could take
over the messages of other accounts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from firestore_outbox.clock import Clock
from firestore_outbox.errors import OutboxError
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.parts import PartSender
from firestore_outbox.providers.protocol import Profile, Provider

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An entry point, and what came of it."""

    name: str
    package: str | None
    """The distribution and its version. None: the entry point belongs to no installed distribution."""
    adapter: Provider | BadAdapter
    """BadAdapter: it cannot be used. A worker does not start with it."""


def installed(tools: ProviderTools, built_in: Collection[str]) -> Iterator[Provider]:
    """The adapters of installed packages, in the order of their names. Raises BadAdapter."""
    yield from adapters(_points_on(tuple(sys.path)), tools, built_in)


def inspected(tools: ProviderTools, built_in: Collection[str]) -> Iterator[Installed]:
    """The same with those that cannot be used, for a person who looks for the fault."""
    yield from _each(_points_on(tuple(sys.path)), tools, built_in)


@cache
def _points_on(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Found once for each `sys.path`: finding them reads a file of every installed package."""
    return tuple(entry_points(group=GROUP))


def adapters(points: Iterable[EntryPoint], tools: ProviderTools, built_in: Collection[str]) -> Iterator[Provider]:
    for one in _each(points, tools, built_in):
        if isinstance(one.adapter, BadAdapter):
            raise one.adapter
        yield one.adapter


def _each(points: Iterable[EntryPoint], tools: ProviderTools, built_in: Collection[str]) -> Iterator[Installed]:
    taken = set(built_in)
    for point in sorted(points, key=lambda point: point.name):
        package = None if point.dist is None else f"{point.dist.name} {point.dist.version}"
        yield Installed(name=point.name, package=package, adapter=_built(point, tools, taken))
        taken.add(point.name)


def _built(point: EntryPoint, tools: ProviderTools, taken: Collection[str]) -> Provider | BadAdapter:
    where = f"the entry point {point.name!r} ({point.value})"
    if point.name in taken:
        return BadAdapter(f"{where} has the name of another provider; give it a name of its own")
    try:
        factory: Callable[[ProviderTools], object] = point.load()
        provider = factory(tools)
        if not isinstance(provider, Provider) or not isinstance(provider.profile, Profile):
            kind = type(provider).__name__
            return BadAdapter(f"{where} returned a {kind}; it must return a firestore_outbox.Provider with its Profile")
        if provider.name != point.name:
            return BadAdapter(f"{where} returned a provider named {provider.name!r}; the two names must agree")
    except Exception as error:  # noqa: BLE001 - the border: code of another package
        fault = BadAdapter(f"{where} failed: {type(error).__name__}: {error}")
        fault.__cause__ = error
        return fault
    return provider
