"""What the commands that serve until Ctrl-C share: where they listen, and the line that says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Annotated

import typer

Port = Annotated[int, typer.Option(min=0, max=65535, envvar="PORT", help="The port to listen on; 0 takes a free one.")]
Host = Annotated[str, typer.Option(envvar="OUTBOX_HOST", help="The address to listen on; 0.0.0.0 in a container.")]


def log_as_service() -> None:
    """Log as on Cloud Run: one JSON line for each event, from the level of OUTBOX_LOG_LEVEL on."""
    from firestore_outbox import log

    log.configure(os.environ.get("OUTBOX_LOG_LEVEL", "INFO"))


def ready_line(name: str, *, as_json: bool) -> Callable[[str], None]:
    """A callback that prints where the server listens, as soon as it does."""

    def ready(where: str) -> None:
        print(json.dumps({name: where}) if as_json else f"ready  {where}", flush=True)

    return ready
