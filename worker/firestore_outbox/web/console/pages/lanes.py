"""Lanes and jobs, for operators: who holds what, what your handlers gave up, and the shared limits."""

from __future__ import annotations

from typing import Any

from firestore_outbox.errors import NotFound
from firestore_outbox.limits.store import LimitStore
from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.web.console.deeds import Deed, Form, Outcome, Subject
from firestore_outbox.web.console.rights import Person, Right
from firestore_outbox.web.console.screens import Console, Params, Screen, Viewer

PAGE = 50


async def load(console: Console, viewer: Viewer, params: Params) -> dict[str, Any]:
    system = console.system
    return {
        "late": (await system.overview.health()).late,
        "lanes": await system.lanes.all(limit=PAGE),
        "jobs": await system.dead_letters.list(PAGE),
        "limits": await LimitStore(system.gateway).all(PAGE, system.clock()),
    }


async def _job(console: Console, person: Person, name: str) -> Subject | None:
    try:
        job = await console.system.dead_letters.get(name) if is_document_id(name) else None
    except NotFound:
        return None
    return None if job is None else Subject(id=name, account_id=None, right=Right.OPERATE)


async def _retry(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    job = await console.system.dead_letters.retry(subject.id)
    return Outcome(sentence=f"{job.kind} runs again for {job.key}.", to="/lanes")


async def _drop(console: Console, person: Person, subject: Subject, form: Form) -> Outcome:
    await console.system.dead_letters.drop(subject.id)
    return Outcome(sentence="The job is dropped. Its events stay handled.", to="/lanes")


SCREENS = (
    Screen(
        path="/lanes", template="lanes.html", title="Lanes and jobs", section="lanes", load=load, operators_only=True
    ),
)
DEEDS = (
    Deed(action="job.retry", path="/jobs/{id}/retry", find=_job, do=_retry),
    Deed(action="job.drop", path="/jobs/{id}/drop", find=_job, do=_drop),
)
