"""`outbox page`: the chat page for a Firebase project, on this machine or as files for a web server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.output import Json, console, fail, run, show_json

if TYPE_CHECKING:
    from firestore_outbox.local.page_site import PageConfig

NO_PROJECT = (
    "which Firebase project? Give --config FILE with the configuration of its web app. On a laptop's stack (outbox dev)"
    " paste the export line into this terminal instead"
)
HOST = "localhost"
"""By this name Firebase knows a developer's machine: it is an authorized domain for sign-in, 127.0.0.1 is none."""


def register(app: typer.Typer) -> None:
    app.command()(page)


def page(
    config: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="The configuration of the project's web app, as Firebase shows it: apiKey, projectId, authDomain, ….",
        ),
    ] = None,
    google: Annotated[
        bool, typer.Option("--google", help="Offer sign-in with Google beside email and password.")
    ] = False,
    database: Annotated[
        str | None, typer.Option(metavar="ID", help="The Firestore database; OUTBOX_DATABASE by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(file_okay=False, metavar="DIR", help="Write the files here, for a web server, and serve nothing."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8087,
    as_json: Json = False,
) -> None:
    """Serve the chat page for a Firebase project: people sign in and see the accounts that they are members of.

    It listens on this machine alone, until Ctrl-C. With --out it writes static files for a web server instead."""
    from firestore_outbox.local.page_site import missing, sdk, site

    chosen = _config(config, google=google, database=database)
    installed = sdk()
    if installed is None:
        fail(missing() or "")
    contents = site(chosen, installed)
    if out is None:
        run(_serve(contents, port, as_json))
        return
    for name, content in contents.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    if as_json:
        show_json({"directory": str(out), "files": len(contents)})
    else:
        console.print(f"wrote {len(contents)} files to {out}", soft_wrap=True)
        console.print(f"next: put {out} on a web server, for example firebase deploy --only hosting", soft_wrap=True)


def _config(file: Path | None, *, google: bool, database: str | None) -> PageConfig:
    from firestore_outbox.local.page_site import BadConfig, PageConfig, firebase_config

    firestore, auth = (os.environ.get(f"{name}_EMULATOR_HOST", "") for name in ("FIRESTORE", "FIREBASE_AUTH"))
    if file is not None:
        try:
            firebase = firebase_config(file.read_text(encoding="utf-8"))
        except OSError:
            raise typer.BadParameter(f"{file} does not exist, or cannot be read", param_hint="--config") from None
        except (BadConfig, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{file}: {error}", param_hint="--config") from None
    elif firestore and auth:
        firebase = {"apiKey": "local", "projectId": os.environ.get("OUTBOX_PROJECT", "demo-outbox")}
    else:
        raise typer.BadParameter(NO_PROJECT, param_hint="--config")
    if google and "authDomain" not in firebase:
        raise typer.BadParameter("sign-in with Google needs authDomain in the configuration", param_hint="--google")
    return PageConfig(
        firebase=firebase,
        database_id=database or os.environ.get("OUTBOX_DATABASE", ""),
        has_google=google,
        firestore=firestore,
        auth=auth,
    )


async def _serve(files: dict[str, bytes], port: int, as_json: bool) -> None:
    from firestore_outbox.local.serve_files import serve_files

    def ready(bound: int) -> None:
        address = f"http://{HOST}:{bound}/"
        print(json.dumps({"page": address}) if as_json else f"ready  {address}", flush=True)

    await serve_files(files, port, ready)
