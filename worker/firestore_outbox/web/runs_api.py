"""Reminders and runs for apps.

`POST /v1/reminders`; `GET`, `PATCH`, `DELETE /v1/reminders/{reminderId}`, `POST` to its `:pause` and `:resume`; `GET
/v1/runs?accountId=ID`, `GET /v1/runs/{runId}`, its `/targets` (a page) and `/targets.csv` (all); `POST` to `:pause`,
`:resume`, `:cancel`, `:retry-failed`.

A reminder's body is `{reminderId, accountId, targets, parts, timezone, schedule, window?, onWindowEnd?, missed?,
category?}`, times as RFC 3339 with an offset; `targetsFile`, the text of a file of targets, may stand in the place of
`targets`. A PATCH has the fields that change. A call may be repeated with the same body as often as its answer gets
lost: the first is 201, the others 200, and the reminder exists once. The same reminderId with anything else in the body
is 409.

    400  the body is at fault; `error` says where         401  no Firebase ID token, or none that we believe
    403  not a member of the account, or the role does not allow it: pause, resume and cancel take an owner, the rest
         an owner or an agent. No such run, or one of another account: the answer is the same
    409  the reminderId belongs to another reminder; or the run does not take this command now, and `error` says why
    408  the body came too slowly                         413  too large
    503  Firestore, Google's certificates, or too many large bodies at once: try again

The token is verified before the body is read (web/functions.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from firestore_outbox.accounts.roles import Action, may
from firestore_outbox.errors import Unavailable, Unwritable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_account_id, is_document_id, is_reminder_id
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.reminders.add import Added, Differs, Remind
from firestore_outbox.reminders.change import Changed, ChangeReminder, NotChanged, Removed
from firestore_outbox.reminders.check import Faulty, NewReminder
from firestore_outbox.reminders.control import Control, NotTaken, Taken
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.report import PAGE, Report
from firestore_outbox.reminders.run import Command
from firestore_outbox.reminders.store import RunStore, StoredRun
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.target_file import BadFile, parse_target_file
from firestore_outbox.reminders.view import shown, stored_run
from firestore_outbox.web.auth import User
from firestore_outbox.web.http_api import (
    Answer,
    BadBody,
    NotAllowed,
    allow,
    as_json,
    fields_of,
    object_of,
    parts_of,
    refusal,
    require,
    role_of,
    time_of,
)

MAX_BODY_BYTES = 8 * 1024 * 1024
"""A hundred thousand targets of some 80 bytes."""
REQUIRED = ("reminderId", "accountId", "parts", "timezone", "schedule")
OPTIONAL = ("window", "onWindowEnd", "missed", "category", "targets", "targetsFile")
REMINDER_ACTIONS: Mapping[str, ReminderStatus] = {
    "pause": ReminderStatus.PAUSED,
    "resume": ReminderStatus.ACTIVE,
}
MOST_RUNS = 100
MOST_TARGETS = PAGE
RETRY_FAILED = "retry-failed"
ACTIONS: Mapping[str, Action] = {
    **{command.value: Action.STEER_RUN for command in Command},
    RETRY_FAILED: Action.REMIND,
}
"""What a run can be asked for, and what a member must be allowed to do for it."""
_TIMES = ("at", "start")


@dataclass(frozen=True, slots=True)
class RemindersApi:
    gateway: Gateway
    remind: Remind
    change: ChangeReminder

    async def __call__(self, user: User, method: str, reminder_id: str, action: str, body: bytes) -> Answer:
        """A reminder that exists: GET, PATCH, DELETE, or POST with one of `REMINDER_ACTIONS`."""
        try:
            found = await self.gateway.get(paths.reminder(reminder_id)) if is_reminder_id(reminder_id) else None
            account_id = None if found is None else found.data.get("accountId")
            if found is None or not isinstance(account_id, str) or not is_account_id(account_id):
                return _no_such_reminder()
            role = await role_of(self.gateway, user, account_id)
            if not may(role, Action.READ):
                return _no_such_reminder()
            if method == "GET":
                return Answer(200, as_json({"reminderId": found.id, **_shown(found.data)}))
            require(role, Action.CHANGE_REMINDER)
            if method == "PATCH":
                return _changed(found.id, await self.change.edit(found.id, _changes(body)))
            if method == "DELETE":
                return _changed(found.id, await self.change.remove(found.id))
            return _changed(found.id, await self.change.set_status(found.id, REMINDER_ACTIONS[action]))
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unavailable:
            return refusal(503, "the reminder could not be read or changed at the moment; try again")

    async def post(self, user: User, body: bytes) -> Answer:
        try:
            fields = fields_of(body, required=REQUIRED, optional=OPTIONAL)
            await allow(self.gateway, user, fields["accountId"], Action.REMIND)
            return _added(await self.remind(_reminder(fields, user)), str(fields["reminderId"]))
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unwritable:
            return refusal(400, "the reminder is too large to be stored")
        except Unavailable:
            return refusal(503, "the reminder could not be stored at the moment; send the same body again")


def _reminder(fields: Mapping[str, Any], user: User) -> NewReminder:
    if not isinstance(fields["reminderId"], str):
        raise BadBody(f"reminderId {faults.NO_TEXT}")
    targets = _targets(fields)
    parts_of(fields["parts"])
    others = {name: value for name, value in fields.items() if name not in ("reminderId", *_OF_TARGETS)}
    asked = {name: value for name, value in others.items() if value is not None or name not in OPTIONAL}
    asked["schedule"] = _with_times(fields["schedule"])
    return NewReminder(reminder_id=fields["reminderId"], fields=asked, targets=targets, created_by=user.uid)


_OF_TARGETS = ("targets", "targetsFile")
_NOT_SHOWN = frozenset({"targets", "digest", "asked"})


def _targets(fields: Mapping[str, Any]) -> list[Any]:
    """In the body as a list, or as the text of a file."""
    given = [name for name in _OF_TARGETS if fields.get(name) is not None]
    if len(given) > 1:
        raise BadBody("give either targets or targetsFile")
    if not given:
        raise BadBody(f"targets {faults.MISSING}")
    value = fields[given[0]]
    if given[0] == "targets":
        if not isinstance(value, list):
            raise BadBody(f"targets {faults.NO_LIST}")
        return value
    if not isinstance(value, str):
        raise BadBody(f"targetsFile {faults.NO_TEXT}")
    found = parse_target_file(value)
    if isinstance(found, BadFile):
        raise BadBody(f"targetsFile, {found}")
    return list(found.targets)


def _changes(body: bytes) -> dict[str, Any]:
    changes = object_of(body)
    if changes.get("targetsFile") is not None:
        changes = {name: value for name, value in changes.items() if name not in _OF_TARGETS} | {
            "targets": _targets(changes)
        }
    if "parts" in changes:
        parts_of(changes["parts"])
    return {**changes, "schedule": _with_times(changes["schedule"])} if "schedule" in changes else changes


def _shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """Its fields, with the number of targets in their place."""
    fields = {name: value for name, value in data.items() if name not in _NOT_SHOWN}
    return {**fields, "targetCount": data.get("targetCount", len(data.get("targets") or ()))}


def _changed(reminder_id: str, result: Changed | Removed | NotChanged) -> Answer:
    match result:
        case NotChanged(sentence=sentence):
            return refusal(409, sentence)
        case Removed():
            return Answer(200, {"reminderId": reminder_id, "removed": True})
        case Changed(status=status, fires=fires):
            return Answer(200, as_json({"reminderId": reminder_id, "status": status.value, "nextFires": list(fires)}))
        case _:
            assert_never(result)


def _no_such_reminder() -> Answer:
    return refusal(403, "there is no such reminder, or you are not a member of its account")


def _with_times(schedule: object) -> object:
    if not isinstance(schedule, dict):
        return schedule
    return {name: time_of(f"schedule.{name}", value) if name in _TIMES else value for name, value in schedule.items()}


def _added(result: Added | Faulty | Differs, reminder_id: str) -> Answer:
    match result:
        case Faulty(sentences=sentences):
            return refusal(400, " ".join(sentences))
        case Differs():
            return refusal(409, f"another reminder has the reminderId {reminder_id}; choose a new one")
        case Added():
            body = {
                "reminderId": result.reminder_id,
                "reminder": f"reminders/{result.reminder_id}",
                "status": result.status.value,
                "targets": result.targets,
                "nextFireAt": result.fires[0] if result.fires else None,
                "nextFires": list(result.fires),
                "forecast": None
                if result.forecast is None
                else {"endsAt": result.forecast.ends_at, "warning": result.forecast.warning},
            }
            return Answer(201 if result.is_new else 200, as_json(body))
        case _:
            assert_never(result)


@dataclass(frozen=True, slots=True)
class RunsApi:
    gateway: Gateway
    runs: RunStore
    control: Control
    summary: Summary
    report: Report

    async def targets(self, user: User, run_id: str, query: Mapping[str, str]) -> Answer:
        """A page of them, as `?limit=`, `?after=` and `?status=` say."""
        try:
            asked = _page_of(query)
            stored, _ = await self._run(user, run_id)
            if stored is None:
                return _no_such_run()
            page = await self.report.page(run_id, *asked)
            body = {"targets": page.targets} if page.after is None else {"targets": page.targets, "after": page.after}
            return Answer(200, as_json(body))
        except BadBody as error:
            return refusal(400, str(error))
        except Unavailable:
            return refusal(503, "the targets could not be read at the moment; try again")

    async def file(self, user: User, run_id: str) -> Answer | AsyncIterator[str]:
        """A line for each target, as CSV."""
        try:
            stored, _ = await self._run(user, run_id)
            return _no_such_run() if stored is None else self.report.as_csv(run_id)
        except Unavailable:
            return refusal(503, "the run could not be read at the moment; try again")

    async def get(self, user: User, run_id: str) -> Answer:
        """Counted for this call, with a forecast if it has not ended."""
        try:
            stored, _ = await self._run(user, run_id)
            return _no_such_run() if stored is None else Answer(200, as_json(await shown(self.summary, stored)))
        except Unavailable:
            return refusal(503, "the run could not be read at the moment; try again")

    async def list(self, user: User, account_id: str | None) -> Answer:
        """The account's latest runs, the newest first, as their documents have them."""
        try:
            if account_id is None or not is_account_id(account_id):
                return refusal(400, "say whose runs: /v1/runs?accountId=ID")
            await allow(self.gateway, user, account_id, Action.READ)
            found = await self.runs.runs(account_id, MOST_RUNS)
            return Answer(200, as_json({"runs": [stored_run(one) for one in found]}))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unavailable:
            return refusal(503, "the runs could not be read at the moment; try again")

    async def post(self, user: User, run_id: str, action: str) -> Answer:
        """One of `ACTIONS`. 202: it is written down, and will be carried out."""
        try:
            stored, role = await self._run(user, run_id)
            if stored is None:
                return _no_such_run()
            require(role, ACTIONS[action])
            return _taken(await self._ask(run_id, action))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unavailable:
            return refusal(503, "the run could not be told at the moment; try again")

    async def _ask(self, run_id: str, action: str) -> Taken | NotTaken:
        if action == RETRY_FAILED:
            return await self.control.retry_failed(run_id)
        return await self.control.ask(run_id, Command(action))

    async def _run(self, user: User, run_id: str) -> tuple[StoredRun | None, object]:
        """The run and the caller's role. None, too, for a run of an account that the caller may not read: a stranger
        does not learn which runs there are."""
        stored = await self.runs.run(run_id) if is_document_id(run_id) else None
        if stored is None:
            return None, None
        role = await role_of(self.gateway, user, stored.run.account_id)
        return (stored, role) if may(role, Action.READ) else (None, None)


def _page_of(query: Mapping[str, str]) -> tuple[int, str | None, OutboxStatus | None]:
    limit, after, status = query.get("limit", str(MOST_TARGETS)), query.get("after"), query.get("status")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= MOST_TARGETS):
        raise BadBody(f"limit must be a number from 1 to {MOST_TARGETS}")
    if after is not None and not is_document_id(after):
        raise BadBody("after must be the requestId that the last page ended with")
    if status is not None and status not in list(OutboxStatus):
        raise BadBody(f"status must be one of {', '.join(OutboxStatus)}")
    return int(limit), after, None if status is None else OutboxStatus(status)


def _taken(result: Taken | NotTaken) -> Answer:
    match result:
        case Taken(run_id=run_id):
            return Answer(202, {"runId": run_id, "run": f"runs/{run_id}"})
        case NotTaken(sentence=sentence):
            return refusal(409, sentence)
        case _:
            assert_never(result)


def _no_such_run() -> Answer:
    return refusal(403, "there is no such run, or you are not a member of its account")
