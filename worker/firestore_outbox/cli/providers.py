"""`outbox providers`: which providers this installation has, and what each can do. It makes no call to anyone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import typer

from firestore_outbox import __version__
from firestore_outbox.cli.output import Json, show_json, show_table
from firestore_outbox.clock import system_clock

if TYPE_CHECKING:
    from firestore_outbox.providers.entry_points import BadAdapter
    from firestore_outbox.providers.protocol import Profile, Provider

OWN_PACKAGE = f"firestore-outbox {__version__}"


def register(app: typer.Typer) -> None:
    providers = typer.Typer(name="providers", help="Providers: list what each can do.", no_args_is_help=True)
    providers.callback()(_providers)
    providers.command("list")(list_)
    app.add_typer(providers)


def _providers() -> None:
    """Providers: list what each can do."""


def list_(as_json: Json = False) -> None:
    """List what each provider can do, and its credentials.

    Providers are built in, or come from an installed package. An adapter that cannot be used is listed with its
    fault."""
    rows = list(_rows())
    if as_json:
        show_json(rows)
        return
    columns = ["provider", "package", "takes", "media", "same key twice", "echoes our id", "credentials", "fault"]
    width = len(columns) if any(row["fault"] for row in rows) else len(columns) - 1
    show_table(columns[:width], [_shown(row)[:width] for row in rows], "")


def _rows() -> Iterator[dict[str, Any]]:
    # Here, because the command's own help needs none of it, and it takes a while.
    from firestore_outbox.providers.built_in import ProviderSettings, built_in
    from firestore_outbox.providers.entry_points import ProviderTools, inspected
    from firestore_outbox.providers.http import Http
    from firestore_outbox.providers.parts import PartJitter, PartSender

    tools = ProviderTools(http=Http(), parts=PartSender(jitter=PartJitter(), random=Random()), clock=system_clock)
    own: list[Provider] = sorted(built_in(ProviderSettings(), tools), key=lambda adapter: adapter.name)
    for adapter in own:
        yield _row(adapter.name, OWN_PACKAGE, adapter, is_built_in=True)
    for found in inspected(tools, built_in={adapter.name for adapter in own}):
        yield _row(found.name, found.package, found.adapter, is_built_in=False)


def _row(name: str, package: str | None, adapter: Provider | BadAdapter, *, is_built_in: bool) -> dict[str, Any]:
    from firestore_outbox.providers.entry_points import BadAdapter

    row: dict[str, Any] = {"provider": name, "builtIn": is_built_in, "package": package}
    if isinstance(adapter, BadAdapter):
        return {**row, "fault": str(adapter), "profile": None}
    return {**row, "fault": None, "profile": _profile(adapter.profile)}


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "resendSafe": profile.capability.resend_safe,
        "echoesRequestId": profile.capability.echoes_request_id,
        "partTypes": sorted(profile.part_types),
        "media": profile.media,
        "throttleScopes": sorted(profile.throttle_scopes),
        "eventsNameNumber": profile.events_name_number,
        "credentials": [
            {"name": secret.name, "what": secret.what, "required": secret.required} for secret in profile.secrets
        ],
    }


def _shown(row: dict[str, Any]) -> list[str]:
    name, package, profile = row["provider"], row["package"] or "", row["profile"]
    if profile is None:
        return [name, package, "", "", "", "", "", row["fault"]]
    credentials = [one["name"] if one["required"] else f"[{one['name']}]" for one in profile["credentials"]]
    return [
        name,
        package,
        ", ".join(profile["partTypes"]),
        profile["media"] or "",
        "delivered once" if profile["resendSafe"] else "delivered twice",
        "yes" if profile["echoesRequestId"] else "no",
        ", ".join(credentials),
        "",
    ]
