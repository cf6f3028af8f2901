"""Changes of an account's settings, checked against the model before anything is written.

`AccountSettings` (account.py) is the one list of settings: the command, the HTTP API and docs/accounts.md take names,
types and limits from it. A name is dotted: `pace.perMinute`. The value None removes a setting, which brings its
default back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

from firestore_outbox.accounts.account import Account, AccountSettings, InvalidAccount, parse_account

CHANGED_ELSEWHERE: Mapping[str, str] = {
    "provider": "outbox accounts add --replace",
    "providerNumber": "outbox accounts add --replace",
    "status": "outbox pause and outbox resume",
    "pausedUntil": "outbox pause --until",
}
"""Settings that are not changed alone, and what changes them together with what belongs to them."""
TERM_OF_PLAN = ("planUntil", "planAfter")
"""Fields that end a plan whose payment failed; a plan that an operator gives has no end."""
BY_OPERATORS = frozenset({"plan"})
"""Settings that an owner of the account cannot change: they are what the owner pays for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    fields: Mapping[str, Any]
    """Top-level fields as they are afterwards; None: the field is removed."""
    changes: Mapping[str, tuple[Any, Any]]
    """Dotted name -> before and after. Empty: everything is as asked for already."""


@dataclass(frozen=True, slots=True)
class Refused:
    sentence: str


def names_in(model: type[BaseModel] = AccountSettings, above: str = "") -> Iterator[str]:
    """The dotted name of every setting that is no map."""
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel)]
        if inner:
            yield from names_in(inner[0], f"{above}{name}.")
        else:
            yield f"{above}{name}"


SETTABLE = tuple(name for name in names_in() if name not in CHANGED_ELSEWHERE)


def flat(changes: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """`{"pace": {"perMinute": 20}}` as `{"pace.perMinute": 20}`; None for a map removes all of it."""
    found: dict[str, Any] = {}
    for name, value in changes.items():
        path = f"{above}{name}"
        below = [one for one in SETTABLE if one.startswith(f"{path}.")]
        if below and value is None:
            found |= dict.fromkeys(below)
        elif below and isinstance(value, Mapping):
            found |= flat(value, f"{path}.")
        else:
            found[path] = value
    return found


def change(account_id: str, stored: Mapping[str, Any], changes: Mapping[str, Any], now: datetime) -> Changed | Refused:
    """`stored` is the account's document. Its other fields stay as they are, also those that no model knows. A warm-up
    that is set without its first day begins today."""
    new = {name: dict(value) if isinstance(value, Mapping) else value for name, value in stored.items()}
    told: dict[str, tuple[Any, Any]] = {}
    for name, value in flat(changes).items():
        if name in CHANGED_ELSEWHERE:
            return Refused(f"{name} is changed with {CHANGED_ELSEWHERE[name]}")
        if name not in SETTABLE:
            return Refused(f"there is no setting {name[:60]!r}; {_meant(name)}")
        before = _get(new, name)
        if before != value or type(before) is not type(value):
            _put(new, name, value)
            told[name] = (before, value)
    judged = parse_account(account_id, new)
    since = "warmUp.since"
    if isinstance(judged, Account) and "warmUp" in new and _get(new, since) is None and _concerns(told, "warmUp"):
        assert judged.caps is not None, "a warm-up is a cap"
        today = judged.caps.day_of(now).isoformat()
        _put(new, since, today)
        told[since] = (told.get(since, (None, None))[0], today)
    if isinstance(judged, InvalidAccount):
        return Refused(judged.sentence)
    tops = {name.partition(".")[0] for name in told}
    ended = dict.fromkeys(TERM_OF_PLAN) if "plan" in tops else {}
    return Changed(fields={**{top: new.get(top) for top in sorted(tops)}, **ended}, changes=told)


def _meant(name: str) -> str:
    """The setting that a wrong name was probably meant to be, also without its group: `perminute`. Otherwise all."""
    by_name = {one.lower(): one for one in SETTABLE} | {one.rpartition(".")[2].lower(): one for one in SETTABLE}
    close = get_close_matches(name.lower(), by_name, 1, 0.8)
    return f"did you mean {by_name[close[0]]}?" if close else f"there are: {', '.join(SETTABLE)}"


def _concerns(told: Mapping[str, Any], top: str) -> bool:
    return any(name.partition(".")[0] == top for name in told)


def _get(fields: Mapping[str, Any], name: str) -> Any:
    top, _, rest = name.partition(".")
    value = fields.get(top)
    return value if not rest else _get(value, rest) if isinstance(value, Mapping) else None


def _put(fields: dict[str, Any], name: str, value: Any) -> None:
    top, _, rest = name.partition(".")
    if not rest:
        if value is None:
            fields.pop(top, None)
        else:
            fields[top] = value
        return
    below = fields.get(top)
    inner = dict(below) if isinstance(below, Mapping) else {}
    _put(inner, rest, value)
    if inner:
        fields[top] = inner
    else:
        fields.pop(top, None)
