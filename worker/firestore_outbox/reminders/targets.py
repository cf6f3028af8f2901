"""The targets of a reminder, as documents and calls have them: each an address, or `{id, to, timezone?, variables?}`.

A call that adds or changes a reminder is refused as a whole, with what is wrong. A document is there already: a bad
target in it is marked, and its run skips it with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from firestore_outbox.messages.checked_fields import Address, TimeZone, fault, sentence_of
from firestore_outbox.messages.model import Part
from firestore_outbox.reminders.run import Target
from firestore_outbox.reminders.variables import LONGEST, MOST, PLACEHOLDER, missing, placeholders

LONGEST_ID = 256
"""Characters of a target's id."""


def _named(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not PLACEHOLDER.fullmatch(f"{{{name}}}"):
            raise fault(f"has the name {name[:60]!r}; a variable is 1 to 50 letters, digits and _")
    return variables


class _Target(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID)]
    to: Address
    timezone: TimeZone | None = None
    variables: Annotated[
        dict[str, Annotated[str, StringConstraints(max_length=LONGEST)]], Field(max_length=MOST), AfterValidator(_named)
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _an_address_alone(cls, raw: Any) -> Any:
        """Without a name, a target is its address."""
        return {"id": raw, "to": raw} if isinstance(raw, str) else raw

    def read(self) -> Target:
        return Target(target_id=self.id, to=self.to, timezone=self.timezone, variables=self.variables)


class _Targets(BaseModel):
    model_config = ConfigDict(strict=True)
    targets: list[_Target]


class _Chunk(BaseModel):
    model_config = ConfigDict(strict=True)
    targets: Annotated[list[Any], Field(min_length=1, max_length=1_000)]


# --- of a call


def judge_targets(raw: Sequence[Any], *, most_faults: int) -> tuple[Target, ...] | tuple[str, ...]:
    """All targets of a reminder that is to be made; or what is wrong with them."""
    if not raw:
        return ("targets: there are none.",)
    try:
        targets = _read(raw)
    except ValidationError as error:
        return tuple(f"{sentence_of(found)}." for found in error.errors(include_url=False)[:most_faults])
    seen: set[str] = set()
    for target in targets:
        if target.target_id in seen:
            return (f"targets: {target.target_id!r} is there twice.",)
        seen.add(target.target_id)
    return targets


def have_variables(targets: Iterable[Target]) -> bool:
    return any(target.variables for target in targets)


def without_values(parts: Sequence[Part], targets: Iterable[Target], *, most: int = 10) -> tuple[str, ...]:
    """Which targets lack a value for which placeholder, in words; the first few."""
    names = placeholders(part.model_dump(exclude_none=True) for part in parts)
    found = (
        f"targets[{place}] ({target.target_id}): the variable {name} is missing; the message has {{{name}}}."
        for place, target in enumerate(targets)
        if target.fault is None and (name := missing(names, target.variables)) is not None
    )
    return tuple(islice(found, most))


# --- of a document


def inline_targets(raw: Sequence[Any]) -> tuple[Target, ...]:
    """Those in the reminder itself. Of two with one id the first is meant."""
    seen: set[str] = set()
    targets: list[Target] = []
    for place, target in enumerate(_each(raw, "targets")):
        name = target.target_id
        twice = f"targets[{place}].id is {name!r}, which is there twice"
        targets.append(replace(target, target_id=f"targets[{place}]", fault=twice) if name in seen else target)
        seen.add(name)
    return tuple(targets)


def parse_targets(raw: Any, name: str) -> tuple[Target, ...] | str:
    """A document of the subcollection, of that name; or what is wrong with it."""
    try:
        chunk = _Chunk.model_validate({"targets": raw})
    except ValidationError as error:
        return f"{sentence_of(error.errors(include_url=False)[0])}."
    return _each(chunk.targets, name)


def _each(raw: Sequence[Any], where: str) -> tuple[Target, ...]:
    try:
        return _read(raw)
    except ValidationError as error:
        faults: dict[int, str] = {}
        for found in error.errors(include_url=False):
            faults.setdefault(int(found["loc"][1]), sentence_of(found))
    good = iter(_read([one for place, one in enumerate(raw) if place not in faults]))
    return tuple(
        _faulty(one, f"{where}[{place}]", faults[place]) if place in faults else next(good)
        for place, one in enumerate(raw)
    )


def _read(raw: Sequence[Any]) -> tuple[Target, ...]:
    return tuple(one.read() for one in _Targets.model_validate({"targets": list(raw)}).targets)


def _faulty(raw: Any, place: str, fault: str) -> Target:
    """Under its own id if it has one, else under its place."""
    fields = raw if isinstance(raw, Mapping) else {"id": raw, "to": raw}
    name, to = fields.get("id"), fields.get("to")
    return Target(
        target_id=name if isinstance(name, str) and 0 < len(name) <= LONGEST_ID else place,
        to=to[:LONGEST_ID] if isinstance(to, str) else "",
        fault=fault,
    )
