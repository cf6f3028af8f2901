"""Needs you: what only a person can decide. Uncertain and failed messages, parked accounts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.operations.redrive import Redriven
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Subject, account_with
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.rows import shown_row
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer

PAGE = 50


async def load(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    system, accounts = console.system, viewer.accounts
    uncertain, failed = await asyncio.gather(
        _newest(console, viewer, OutboxStatus.UNCERTAIN), _newest(console, viewer, OutboxStatus.FAILED)
    )
    groups = Counter((str(row["accountId"]), str(row["code"] or "unknown")) for row in failed)
    working = {key.partition(":")[2]: job for key, job in console.jobs.items() if key.startswith("redrive:")}
    return {
        "uncertain": uncertain,
        "failed": failed,
        "groups": groups.most_common(),
        "parked": await system.overview.parked(accounts),
        "dead": len(await system.dead_letters.list(PAGE)) if accounts is None else None,
        "working": {account: job for account, job in working.items() if viewer.sees(account)},
        "page": PAGE,
    }


async def _newest(console: Console, viewer: Viewer, status: OutboxStatus) -> list[dict[str, Any]]:
    listing, accounts = console.system.listing, viewer.accounts
    if accounts is None:
        if not await console.system.messages.count_in_status(None, status):
            return []  # one read instead of a query for each account
        found = await listing.newest(status, account_id=None, limit=PAGE, behind=None)
    else:
        found = await listing.of_accounts(status, accounts, limit=PAGE, behind=None) if accounts else []
    return [shown_row(one) for one in found]


async def confirm(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    """How many messages a click would send again."""
    account_id = params["id"]
    if not viewer.may(account_id, Right.REDRIVE_ALL) or not is_account_id(account_id):
        return None
    count = await console.system.messages.count_in_status(account_id, OutboxStatus.FAILED)
    return {
        "sentence": f"{count:,} failed messages of {account_id} go back into the queue and are sent again. "
        "Messages of runs stay: a run's failed targets are tried again on its own page.",
        "is_possible": count > 0,
        "action": f"/accounts/{account_id}/redrive",
        "text": f"Send {count:,} messages again",
        "fields": {"count": str(count)},
        "back": "/needs",
    }


async def _redrive_all(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    """Goes on behind the page. Each message is a commit of its own: if the console ends, the rest is as it was."""
    name = f"redrive:{subject.id}"
    running = console.jobs.get(name)
    if running is not None and not running["ended"]:
        return Outcome(sentence="That is going on already.", is_done=False, to="/needs")
    job: dict[str, Any] = {"done": 0, "left": 0, "ended": False, "of": form.get("count", "")}

    async def work() -> None:
        try:
            async for results in console.system.redrive.failed_of(subject.id):
                back = sum(isinstance(result, Redriven) for result in results)
                job["done"] += back
                job["left"] += len(results) - back
        finally:
            job["ended"] = True
            console.views.forget()

    job["task"] = asyncio.create_task(work())
    console.jobs[name] = job
    return Outcome(sentence=f"The failed messages of {subject.id} go back into the queue.", to="/needs")


_ACCOUNT = account_with(Right.REDRIVE_ALL)
SCREENS = (
    Screen(path="/needs", template="needs.html", title="Needs you", section="needs", load=load),
    Screen(
        path="/accounts/{id}/redrive",
        template="confirm.html",
        title="Send failed messages again",
        section="needs",
        load=confirm,
        is_live=False,
    ),
)
DEEDS = (Deed(action="account.redrive", path="/accounts/{id}/redrive", find=_ACCOUNT, do=_redrive_all),)
