"""Runs and reminders: how far a run is, when it ends, and the ways to steer it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.reminders.control import NotTaken
from firestore_outbox.reminders.report import Report
from firestore_outbox.reminders.run import ENDED, Command
from firestore_outbox.reminders.store import StoredRun
from firestore_outbox.reminders.view import shown
from firestore_outbox.web.console.deeds import Deed, Do, Find, Form, Outcome, Subject, not_done
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer
from firestore_outbox.web.run_file import csv_file

PAGE = 50
MOST_ACCOUNTS = 20
"""Accounts of one person whose runs are listed together."""
DONE = ("sent", "failed", "skipped", "cancelled", "uncertain")


async def listed(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    store = console.system.runs
    accounts = [None] if viewer.accounts is None else list(viewer.accounts)[:MOST_ACCOUNTS]
    runs = [run for account in accounts for run in await store.runs(account, PAGE)]
    reminders = [one for account in accounts for one in await store.reminders(PAGE, account)]
    runs.sort(key=lambda stored: stored.run.fire_at, reverse=True)
    return {
        "runs": [{**stored.data, "runId": stored.run.run_id} for stored in runs[:PAGE]],
        "reminders": [{**one.data, "reminderId": one.id} for one in reminders[:PAGE]],
    }


async def _stored(console: Console, viewer: Viewer, run_id: str) -> StoredRun | None:
    stored = await console.system.runs.run(run_id) if is_document_id(run_id) else None
    return stored if stored is not None and viewer.sees(stored.run.account_id) else None


async def show(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    stored = await _stored(console, viewer, params["id"])
    if stored is None:
        return None
    run = await shown(console.system.summary, stored)
    why = await console.system.explain_run(params["id"])
    counts = run["counts"]
    return {
        "title": f"Run {params['id']}",
        "run": run,
        "why": () if why is None else why.sentences,
        "done": sum(counts[name] for name in DONE),
        "has_ended": stored.run.status in ENDED,
    }


async def confirm_cancel(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    stored = await _stored(console, viewer, params["id"])
    if stored is None or not viewer.may(stored.run.account_id, Right.STEER_RUN):
        return None
    count = await console.system.messages.count_of_run(params["id"], OutboxStatus.QUEUED)
    rest = f"{count:,} messages" if stored.run.is_expanded else "All messages"
    return {
        "sentence": f"{rest} of {params['id']} that have not been sent are cancelled for good.",
        "is_possible": stored.run.status not in ENDED,
        "action": f"/runs/{params['id']}/cancel",
        "text": "Cancel the run",
        "fields": {},
        "back": f"/runs/{params['id']}",
    }


async def confirm_retry(console: Console, viewer: Viewer, params: Params) -> dict[str, Any] | None:
    stored = await _stored(console, viewer, params["id"])
    if stored is None or not viewer.may(stored.run.account_id, Right.REMIND):
        return None
    count = await console.system.messages.count_of_run(params["id"], OutboxStatus.FAILED)
    return {
        "sentence": f"A new run sends {count:,} failed messages of {params['id']} again.",
        "is_possible": stored.run.status in ENDED and count > 0,
        "action": f"/runs/{params['id']}/retry",
        "text": f"Try {count:,} again",
        "fields": {},
        "back": f"/runs/{params['id']}",
    }


async def as_csv(console: Console, viewer: Viewer, params: Params) -> Response | None:
    stored = await _stored(console, viewer, params["id"])
    if stored is None:
        return None
    report = Report(console.system.gateway, console.system.messages)
    return csv_file(report.as_csv(params["id"]))


# --- what can be done


def _run_with(right: Right) -> Find:
    async def find(console: Console, person: Person, run_id: str) -> Subject | None:
        stored = await console.system.runs.run(run_id) if is_document_id(run_id) else None
        return None if stored is None else Subject(id=run_id, account_id=stored.run.account_id, right=right)

    return find


def _asking(command: Command) -> Do:
    async def do(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
        result = await console.system.control.ask(subject.id, command)
        if isinstance(result, NotTaken):
            return not_done(result.sentence, f"/runs/{subject.id}")
        return Outcome(
            sentence=f"{command.value.capitalize()} is requested; it takes a moment.", to=f"/runs/{subject.id}"
        )

    return do


async def _retry(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    result = await console.system.control.retry_failed(subject.id)
    if isinstance(result, NotTaken):
        return not_done(result.sentence, f"/runs/{subject.id}")
    return Outcome(sentence=f"{result.run_id} sends them again.", to=f"/runs/{result.run_id}")


SCREENS = (
    Screen(path="/runs", template="runs.html", title="Reminders and runs", section="runs", load=listed),
    Screen(path="/runs/{id}", template="run.html", title="Run", section="runs", load=show, every=FAST),
    Screen(
        path="/runs/{id}/cancel",
        template="confirm.html",
        title="Cancel a run",
        section="runs",
        load=confirm_cancel,
        is_live=False,
    ),
    Screen(
        path="/runs/{id}/retry",
        template="confirm.html",
        title="Try failed targets again",
        section="runs",
        load=confirm_retry,
        is_live=False,
    ),
)
DEEDS = (
    *(
        Deed(
            action=f"run.{command.value}",
            path=f"/runs/{{id}}/{command.value}",
            find=_run_with(Right.STEER_RUN),
            do=_asking(command),
        )
        for command in Command
    ),
    Deed(action="run.retry", path="/runs/{id}/retry", find=_run_with(Right.REMIND), do=_retry),
)
