"""A question to the rules and their verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluate import Accesses, Documents, Evaluation
from firestore_emulator.rules.limits import MAX_EXPRESSIONS
from firestore_emulator.rules.matching import Segment, bindings
from firestore_emulator.rules.ruleset import Block, Ruleset
from firestore_emulator.rules.values import Exhausted, Failure, Value, type_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May this operation be done? Everything that a condition can read is here."""

    method: str
    """get, list, create, update or delete"""
    database: str
    """Its id, `(default)` for most."""
    path: tuple[Segment, ...]
    """Below `documents`. Of a query: its collection, and `ANY` for the document."""
    request: dict[str, Value]
    resource: Value
    """The document as a map, None if there is none, UNDEFINED where a condition must not read it."""
    documents: Documents
    accesses: Accesses = field(default_factory=Accesses)
    """Shared by the questions of one request."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An `allow` that fits and does not allow."""

    statement: ast.Allow
    failure: str | None
    """Why its condition has no value; None: it is false."""


@dataclass(frozen=True, slots=True)
class Allowed:
    used: int
    """Expressions that were evaluated."""


@dataclass(frozen=True, slots=True)
class Denied:
    used: int
    refusals: Sequence[Refusal]
    """Empty: no `allow` fits the path and the method."""
    is_exhausted: bool = False
    """The expressions that a request may use were used up."""


Verdict = Allowed | Denied


def decide(ruleset: Ruleset, question: Question) -> Verdict:
    return decide_with(ruleset.blocks, ruleset.fewest_in_glob, question, [])


def decide_with(blocks: Iterable[Block], fewest_in_glob: int, question: Question, trace: list[Any]) -> Verdict:
    """As `decide`, over blocks that were compiled to record into `trace`."""
    e = Evaluation(
        request=question.request,
        resource=question.resource,
        database=question.database,
        documents=question.documents,
        accesses=question.accesses,
    )
    e.trace = trace
    path = ("databases", question.database, "documents", *question.path)
    refusals: list[Refusal] = []
    try:
        for block in blocks:
            fitting = [one for one in block.statements if question.method in one.methods]
            if not fitting:
                continue
            for found in bindings(block.pattern, path, fewest_in_glob):
                e.wild = found
                for statement in fitting:
                    try:
                        value = True if statement.condition is None else statement.condition(e)
                    except Failure as failure:
                        refusals.append(Refusal(statement.declared, str(failure)))
                        continue
                    if e.used > MAX_EXPRESSIONS:
                        raise Exhausted
                    if value is True:
                        return Allowed(e.used)
                    wrong = None if value is False else f"The condition is a {type_name(value)}, not a bool."
                    refusals.append(Refusal(statement.declared, wrong))
    except Exhausted:
        return Denied(e.used, refusals, is_exhausted=True)
    return Denied(e.used, refusals)
