"""All screens, downloads and actions of the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from firestore_outbox.web.console.deeds import Deed
from firestore_outbox.web.console.pages import (
    account_changes,
    accounts,
    audit,
    dev,
    lanes,
    messages,
    needs,
    notifications,
    now,
    reminders,
    runs,
    wizard,
)
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """Something that is not a page."""

    path: str
    load: Callable[[Console, Viewer, Params], Awaitable[Response | None]]
    """None: there is no such thing, or the person may not see it."""


_PAGES = (now, needs, messages, wizard, reminders, runs, notifications, accounts, account_changes, lanes, audit, dev)
SCREENS: tuple[Screen, ...] = tuple(screen for page in _PAGES for screen in page.SCREENS)
DOWNLOADS = (
    Download(path="/messages/{id}.json", load=messages.as_document),
    Download(path="/runs/{id}.csv", load=runs.as_csv),
)
DEEDS: tuple[Deed, ...] = tuple(deed for page in _PAGES for deed in page.DEEDS)
