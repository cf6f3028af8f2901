"""Audit, for operators: check the invariants on what is stored, and see what operators did."""

from __future__ import annotations

import asyncio
from typing import Any

from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Subject
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import FAST, Console, Params, Screen, Viewer

JOB = "audit"


async def load(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    return {"job": console.jobs.get(JOB), "actions": await console.system.administration.actions(None)}


async def _all(console: Console, person: Person, name: str) -> Subject | None:
    return Subject(id="all documents", account_id=None, right=Right.OPERATE)


async def _run(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    """Goes on behind the page. It only reads: a console that ends leaves nothing behind."""
    running, system = console.jobs.get(JOB), console.system
    if running is not None and not running["ended"]:
        return Outcome(sentence="An audit is going on already.", is_done=False, to="/audit")
    job: dict[str, Any] = {"seen": 0, "findings": [], "ended": False, "fault": None, "at": system.clock()}

    def progress(messages: int) -> None:
        job["seen"] += messages

    async def work() -> None:
        try:
            job["findings"] = await audit(
                system.gateway,
                system.accounts,
                now=system.clock(),
                overlap=system.settings.overlap,
                on_progress=progress,
            )
        except Exception as error:  # noqa: BLE001 - the page says so
            job["fault"] = type(error).__name__
        finally:
            job["ended"] = True
            console.views.forget()

    job["task"] = asyncio.create_task(work())
    console.jobs[JOB] = job
    return Outcome(sentence="The audit has begun. It reads every message once.", to="/audit")


SCREENS = (
    Screen(
        path="/audit", template="audit.html", title="Audit", section="audit", load=load, every=FAST, operators_only=True
    ),
)
DEEDS = (Deed(action="audit.run", path="/audit/run", find=_all, do=_run),)
