"""Reminders and runs for apps: `POST /v1/reminders`, `GET /v1/runs/{runId}`, `POST /v1/runs/{runId}:pause` and so on.

A reminder's body is `{reminderId, accountId, targets, parts, timezone, schedule, window?, onWindowEnd?, missed?}`,
times as RFC 3339 with an offset. A call may be repeated with the same body as often as its answer gets lost: the first
is 201, the others 200, and the reminder exists once. The same reminderId with anything else in the body is 409.

    400  the body is at fault; `error` says where         401  no Firebase ID token, or none that we believe
    403  not a member of the account, or the role does not allow it: pause, resume and cancel take an owner, the rest
         an owner or an agent. No such run, or one of another account: the answer is the same
    409  the reminderId belongs to another reminder; or the run does not take this command now, and `error` says why
    408  the body came too slowly                         413  too large
    503  Firestore, Google's certificates, or too many large bodies at once: try again

The token is verified before the body is read (web/functions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from firestore_outbox.accounts.roles import Action, may
from firestore_outbox.errors import Unavailable, Unwritable
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_document_id
from firestore_outbox.reminders.add import Added, Differs, Remind
from firestore_outbox.reminders.check import Faulty, NewReminder
from firestore_outbox.reminders.control import Control, NotTaken, Taken
from firestore_outbox.reminders.run import Command
from firestore_outbox.reminders.store import RunStore, StoredRun
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.view import shown
from firestore_outbox.web.auth import User
from firestore_outbox.web.http_api import (
    Answer,
    BadBody,
    NotAllowed,
    allow,
    fields_of,
    parts_of,
    refusal,
    require,
    role_of,
    time_of,
)

MAX_BODY_BYTES = 8 * 1024 * 1024
"""A hundred thousand targets of some 80 bytes."""
REQUIRED = ("reminderId", "accountId", "targets", "parts", "timezone", "schedule")
OPTIONAL = ("window", "onWindowEnd", "missed")
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
    for name, kind in (("reminderId", str), ("targets", list)):
        if not isinstance(fields[name], kind):
            raise BadBody(f"{name} {faults.NO_TEXT if kind is str else faults.NO_LIST}")
    parts_of(fields["parts"])
    others = {name: value for name, value in fields.items() if name not in ("reminderId", "targets")}
    asked = {name: value for name, value in others.items() if value is not None or name not in OPTIONAL}
    asked["schedule"] = _with_times(fields["schedule"])
    return NewReminder(reminder_id=fields["reminderId"], fields=asked, targets=fields["targets"], created_by=user.uid)


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

    async def get(self, user: User, run_id: str) -> Answer:
        """Counted for this call, with a forecast if it has not ended."""
        try:
            stored, _ = await self._run(user, run_id)
            return _no_such_run() if stored is None else Answer(200, as_json(await shown(self.summary, stored)))
        except Unavailable:
            return refusal(503, "the run could not be read at the moment; try again")

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


def as_json(value: Any) -> Any:
    """Times as RFC 3339."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case dict():
            return {name: as_json(one) for name, one in value.items()}
        case list() | tuple():
            return [as_json(one) for one in value]
        case _:
            return value
