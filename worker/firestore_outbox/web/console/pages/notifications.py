"""What the account's webhook and its members' devices get about runs, and whether they accepted it."""

from __future__ import annotations

from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer

PAGE = 50


async def listed(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    account_id = params["id"]
    if not is_account_id(account_id) or not viewer.sees(account_id):
        return None
    query = Find(collection=paths.notifications(account_id), order_by=("-createdAt",), limit=PAGE)
    found = await console.system.gateway.find(query)
    return {"title": f"Notifications of {account_id}", "id": account_id, "rows": [one.data for one in found]}


SCREENS = (
    Screen(
        path="/accounts/{id}/notifications",
        template="notifications.html",
        title="Notifications",
        section="now",
        load=listed,
    ),
)
DEEDS = ()
