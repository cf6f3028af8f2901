"""`POST /v1/messages`: the outbox for apps that have no Firestore SDK, and so no batch of their own.

The body is `{requestId, accountId, to, parts, sendAt?, sendBy?, priority?}`, times as RFC 3339 with an offset. Roles
are those of the security rules: only an owner or an agent of the account sends, in their own name. A `sendAt` that has
passed means now.

A call may be repeated with the same body as often as its answer gets lost: the first is 201, the others 200 with the
same result, and the message exists once. The same requestId with anything else in the body is 409.

    400  the body is at fault; `error` says where         401  no Firebase ID token, or none that we believe
    403  not a member of the account, or a viewer         409  `request-id-taken`: the id is another message's
    402  `FREE_LIMIT_REACHED`: the account's plan is used up (docs/plans.md)
    408  the body came too slowly                         413  too large
    503  Firestore, Google's certificates, or too many large bodies at once: try again

The token is verified before the body is read (web/functions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from firestore_outbox.accounts.roles import Action
from firestore_outbox.clock import Clock
from firestore_outbox.errors import StoreUnavailable, Unwritable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages import faults
from firestore_outbox.messages.enqueue import Differs, Enqueue, Enqueued, NewMessage, Refused
from firestore_outbox.messages.limits import LONGEST_AHEAD
from firestore_outbox.messages.priority import is_priority
from firestore_outbox.plans.plan import sentence
from firestore_outbox.plans.usage import PlanCheck
from firestore_outbox.web.auth import User
from firestore_outbox.web.http_api import (
    Answer,
    BadBody,
    NotAllowed,
    allow,
    fields_of,
    parts_of,
    refusal,
    time_of,
)

MAX_BODY_BYTES = 512 * 1024
REQUIRED = ("requestId", "accountId", "to", "parts")
TIMES = ("sendAt", "sendBy")
REQUEST_ID_TAKEN = "request-id-taken"
"""The `code` beside the sentence, as the clients name it."""
LIMIT_REACHED = "FREE_LIMIT_REACHED"


class MessagesApi:
    def __init__(self, gateway: Gateway, enqueue: Enqueue, plan_check: PlanCheck, clock: Clock) -> None:
        self._gateway = gateway
        self._plan_check = plan_check
        self._enqueue = enqueue
        self._clock = clock

    async def post(self, user: User, body: bytes) -> Answer:
        try:
            fields = fields_of(body, required=REQUIRED, optional=(*TIMES, "priority"))
            await allow(self._gateway, user, fields["accountId"], Action.SEND)
            new = self._message(fields, user)
            if (used_up := await self._plan_check.refusal(new.account_id, new.request_id)) is not None:
                plan, limit = used_up
                return refusal(402, sentence(plan, limit.limit), code=LIMIT_REACHED)
            return await self._store(new)
        except BadBody as error:
            return refusal(400, str(error))
        except NotAllowed as error:
            return refusal(403, str(error))
        except Unwritable:
            return refusal(400, "the message is too large to be stored")
        except StoreUnavailable:
            return refusal(503, "the message could not be stored at the moment; send the same body again")

    def _message(self, fields: Mapping[str, Any], user: User) -> NewMessage:
        send_at, send_by = (time_of(name, fields.get(name)) for name in TIMES)
        if send_at is not None and send_at - self._clock() > LONGEST_AHEAD:
            raise BadBody(f"sendAt {faults.TOO_FAR_AHEAD}")
        if send_at is not None and send_by is not None and send_by < send_at:
            raise BadBody(f"sendBy {faults.before('sendAt')}")
        for name in ("requestId", "to"):
            if not isinstance(fields[name], str):
                raise BadBody(f"{name} {faults.NO_TEXT}")
        return NewMessage(
            request_id=fields["requestId"],
            account_id=fields["accountId"],
            to=fields["to"],
            parts=parts_of(fields["parts"]),
            created_by=user.uid,
            send_at=send_at,
            send_by=send_by,
            priority=_priority_of(fields.get("priority")),
        )

    async def _store(self, new: NewMessage) -> Answer:
        done = await self._enqueue(new)
        match done:
            case Refused(sentence=sentence):
                return refusal(400, sentence)
            case Enqueued() if (done.send_at, done.send_by, done.priority) == (new.send_at, new.send_by, new.priority):
                return Answer(201 if done.is_new else 200, _result(new))
            case Differs() | Enqueued():
                sentence = f"another message has the requestId {new.request_id}; choose a new one"
                return refusal(409, sentence, code=REQUEST_ID_TAKEN)
            case _:
                assert_never(done)


def _priority_of(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and is_priority(value)):
        raise BadBody(f"priority {faults.PRIORITY}")
    return value


def _result(new: NewMessage) -> dict[str, Any]:
    """The same for the first call and each repetition: it says where to watch the status, not what it is by now."""
    return {
        "requestId": new.request_id,
        "threadId": new.thread_id,
        "message": paths.message(new.thread_id, new.request_id),
        "status": "queued",
    }
