"""What every call of an app has in common: who calls, whether they may, JSON that is read with suspicion, an answer.

Members may do here what the security rules allow to their clients (accounts/roles.py). An account that does not
exist is answered like one that the caller is no member of, so that a stranger does not learn which there are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from firestore_outbox.accounts.members import Members
from firestore_outbox.accounts.roles import Action, may, takes
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.messages import faults
from firestore_outbox.messages.ids import is_account_id
from firestore_outbox.messages.model import MediaPart, SealedPart, TemplatePart, TextPart
from firestore_outbox.web.auth import CannotTell, Unauthenticated, User, UserCheck

_PART_FIELDS = {
    "text": frozenset(TextPart.model_fields),
    "media": frozenset(MediaPart.model_fields),
    "template": frozenset(TemplatePart.model_fields),
    "sealed": frozenset(SealedPart.model_fields),
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, Any]


class BadBody(ValueError):
    """What is wrong with it, for the person who wrote the call."""


class NotAllowed(Exception):
    """Why this person may not do this with this account."""


def refusal(status: int, sentence: str, *, code: str | None = None) -> Answer:
    """`code` is for programs that can do something about it."""
    return Answer(status, {"error": sentence} if code is None else {"error": sentence, "code": code})


# --- who


async def signed_in(users: UserCheck, authorization: str | None) -> User | Answer:
    user = await users.check(authorization)
    match user:
        case Unauthenticated(reason=reason):
            return refusal(401, reason)
        case CannotTell():
            return refusal(503, "the token cannot be verified at the moment; try again")
        case User():
            return user
        case _:
            assert_never(user)


async def role_of(gateway: Gateway, user: User, account_id: str) -> object:
    """What the member document says, which may be anything. None: not a member."""
    return await Members(gateway).role(account_id, user.uid)


async def allow(gateway: Gateway, user: User, account_id: str, action: Action) -> None:
    role = await role_of(gateway, user, account_id)
    if role is None:
        raise NotAllowed("you are not a member of this account")
    require(role, action)


def require(role: object, action: Action) -> None:
    if not may(role, action):
        raise NotAllowed(f"your role in this account does not allow this; it takes {takes(action)}")


# --- what


def object_of(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeError:
        raise BadBody("the body is not UTF-8, or has half a surrogate pair in it") from None
    except (ValueError, RecursionError):
        raise BadBody("the body is not JSON") from None
    if not isinstance(fields, dict):
        raise BadBody("the body must be a JSON object")
    return fields


def fields_of(body: bytes, *, required: Collection[str], optional: Collection[str]) -> dict[str, Any]:
    """All that are required, and none that is not used. One of them is the account."""
    fields = object_of(body)
    for name in required:
        if name not in fields:
            raise BadBody(f"{name} {faults.MISSING}")
    for name in fields:
        if name not in (*required, *optional):
            raise BadBody(f"{name[:60]!r} is unknown; known are {', '.join((*required, *optional))}")
    account_id = fields["accountId"]
    if not isinstance(account_id, str):
        raise BadBody(f"accountId {faults.NO_TEXT}")
    if not is_account_id(account_id):
        raise BadBody(f"accountId {faults.ACCOUNT_ID}")
    return fields


def parts_of(parts: object) -> list[Mapping[str, Any]]:
    """Only their form, and that nothing is in them that is not used; the rest is judged as the worker judges it."""
    if not isinstance(parts, list):
        raise BadBody(f"parts {faults.PARTS}")
    for number, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            raise BadBody(f"parts[{number}].type {faults.PART_TYPE}")
        for name in part:
            if name not in _PART_FIELDS.get(kind, part):
                raise BadBody(f"parts[{number}].{name[:60]} {faults.no_field_of(kind)}")
    return parts


def time_of(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is not None and at.tzinfo is not None:
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadBody(f"{name} {faults.NO_TIME}")


# --- answers


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
