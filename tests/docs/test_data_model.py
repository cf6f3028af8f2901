"""docs/data-model.md and docs/accounts.md describe the documents as the code writes them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, get_args

import annotated_types
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from firestore_emulator.virtual_time import run
from firestore_outbox.accounts import account as accounts
from firestore_outbox.local.simulation.play import Play
from firestore_outbox.local.simulation.run import TIME_LIMIT
from firestore_outbox.local.simulation.scenario import draw
from firestore_outbox.messages.model import MediaPart, SealedPart, TemplatePart, TextPart
from firestore_outbox.providers.outcome import ErrorCode
from firestore_outbox.settings import Settings
from tests.docs.data_model import (
    ACCOUNTS,
    EVENTS,
    OUTBOX,
    PAGE,
    PASS_ON,
    TYPES,
    WRITERS,
    documented,
    modules_that_write,
    named_in_code,
    names_of,
)
from tests.docs.snippets import ROOT

DOCUMENTED = documented()
WORLDS = range(3)
"""Seeds of simulated worlds. They have messages, replies, reminders, runs, sessions and operators."""
MAPS_OF_IDS = {"holds", "heldFor", "cursor.seen", "entries", "line"}
"""Maps whose keys are ids and not names of fields."""
MAY_BE_NULL = {"forecast.endsAt", "forecast.warning", "createdBy"}


def test_every_field_that_the_code_writes_is_documented() -> None:
    for place, documents in WRITERS.items():
        named = named_in_code(place)
        assert named, f"{place} names no fields"
        known = set().union(*(names_of(DOCUMENTED[document]) for document in documents))
        text = PAGE.read_text(encoding="utf-8")
        assert {name for name in named - known if f"`{name}`" not in text} == set(), place
        if not place.endswith((":_Error", ":error_fields")):
            assert named <= known, place


@pytest.mark.parametrize("document", DOCUMENTED)
def test_every_documented_field_is_one_that_the_code_writes(document: str) -> None:
    named = set().union(*(named_in_code(place) for place, documents in WRITERS.items() if document in documents))
    assert names_of(DOCUMENTED[document]) <= named
    assert {row.type for row in DOCUMENTED[document].values()} <= set(TYPES)


def test_every_module_that_writes_documents_is_looked_at() -> None:
    looked_at = {place.partition(":")[0] for place in WRITERS} | set(PASS_ON)
    assert modules_that_write() - looked_at == set(), "add them to tests/docs/data_model.py"


# --- the documents of simulated worlds


def seen_in(seed: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Every version of every document, with its path."""

    async def main() -> list[tuple[str, Mapping[str, Any]]]:
        play = Play(scenario)
        try:
            await play.run()
            return [(seen.path, seen.data) for seen in play.world.truth.changes if seen.data is not None]
        finally:
            await play.world.stop()

    scenario = draw(seed)
    logging.disable(logging.CRITICAL)
    try:
        return run(main(), seed=seed, start=scenario.start, time_limit=TIME_LIMIT)
    finally:
        logging.disable(logging.NOTSET)


def document_of(path: str) -> str | None:
    for document in DOCUMENTED:
        pattern = "".join(
            "[^/]+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", document)
        )
        if re.fullmatch(pattern, path):
            return document
    return None


def flattened(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        path = f"{above}{name}"
        yield path, value
        if isinstance(value, dict):
            if path not in MAPS_OF_IDS:
                yield from flattened(value, f"{path}.")
            else:
                for entry in value.values():
                    yield from flattened(entry, f"{path}.") if isinstance(entry, dict) else ()


def type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case datetime():
            return "timestamp"
        case list() | tuple():
            return "list"
        case dict():
            return "map"
        case _:
            return "null"


@pytest.mark.parametrize("seed", WORLDS)
def test_a_simulated_world_has_only_documented_fields_of_the_documented_types(seed: int) -> None:
    documents: set[str] = set()
    for path, data in seen_in(seed):
        document = document_of(path)
        assert document is not None, path
        documents.add(document)
        for name, value in flattened(data):
            if document == EVENTS and name.startswith("data."):
                continue
            field = name.replace("parkedBecause.", "lastError.")
            known = DOCUMENTED[document] if field == name else DOCUMENTED[OUTBOX]
            assert field in known, f"{document} has {name}"
            found = type_of(value)
            is_right = found == known[field].type or (found, known[field].type) == ("integer", "number")
            assert is_right or (found == "null" and field in MAY_BE_NULL), f"{document} {name} is a {found}"
    assert len(documents) >= 5


# --- parts and errors


def test_the_parts_are_those_of_the_model() -> None:
    rows = re.findall(
        r"^\| (text|media|template|sealed) \| `(\w+)` \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    told = {(kind, name) for kind, name, _ in rows}
    models: dict[str, type[BaseModel]] = {
        "text": TextPart,
        "media": MediaPart,
        "template": TemplatePart,
        "sealed": SealedPart,
    }
    assert told == {(kind, name) for kind, model in models.items() for name in model.model_fields}


def test_the_error_codes_are_those_of_the_code() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Error codes")[2]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [code.value for code in ErrorCode]


# --- docs/accounts.md

ACCOUNTS_PAGE = (ROOT / "docs/accounts.md").read_text(encoding="utf-8")
BY_SETTINGS = {
    "pace.perMinute": f"{Settings.model_fields['per_minute'].default:g}",
    "concurrency": str(Settings.model_fields["send_concurrency"].default),
}
"""Defaults that a setting of the worker gives."""


def settings_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield f"{above}{name}", field
        for one in (field.annotation, *get_args(field.annotation)):
            if isinstance(one, type) and issubclass(one, BaseModel):
                yield from settings_of(one, f"{above}{name}.")


def limits_of(field: FieldInfo) -> set[str]:
    """The numbers that bound it, as the page writes them."""
    kinds = (annotated_types.Ge, annotated_types.Le, annotated_types.MinLen, annotated_types.MaxLen)
    metadata = [*field.metadata]
    for one in get_args(field.annotation):
        for inner in getattr(one, "__metadata__", ()):
            metadata += getattr(inner, "metadata", [inner])
    bounds = [getattr(one, slot) for one in metadata if isinstance(one, kinds) for slot in one.__slots__]
    return {f"{bound:,}" for bound in bounds}


def test_the_page_of_account_settings_has_every_field_with_default_and_limits() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \| .*\|$", ACCOUNTS_PAGE, re.MULTILINE)
    told = {name: (default.strip().strip("`"), limits) for name, default, limits in rows}
    fields = dict(settings_of(accounts.AccountSettings))
    sealing = {"sealing", "sealing.keyVersion", "sealing.publicKey"}
    paid = {"planUntil", "planAfter"}
    assert set(told) == set(fields) | {"parkedBecause", "membersChangedAt", "suppressing"} | sealing | paid
    assert set(told) == set(DOCUMENTED[ACCOUNTS])
    assert sum(len(limits_of(field)) for field in fields.values()) >= 12
    for name, field in fields.items():
        default, limits = told[name]
        if name in BY_SETTINGS:
            assert default == BY_SETTINGS[name], name
        elif field.is_required():
            assert default == "required", name
        elif field.default is not None and not isinstance(field.default, BaseModel):
            shown = str(field.default)
            assert default == (shown.lower() if isinstance(field.default, bool) else shown), name
        for bound in limits_of(field):
            assert bound in limits, f"{name}: {bound}"
