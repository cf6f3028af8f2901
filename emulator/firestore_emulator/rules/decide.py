"""A question to the rules and their verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluation import Accesses, Documents, Evaluation
from firestore_emulator.rules.limits import MAX_EXPRESSIONS
from firestore_emulator.rules.matching import Segment
from firestore_emulator.rules.ruleset import Blocks, Ruleset
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
    """An `allow` statement about this path and method whose condition is not true."""

    statement: ast.Allow
    failure: str | None
    """Why its condition has no value; None: the condition is false."""


@dataclass(frozen=True, slots=True)
class Allowed:
    used: int
    """Expressions that were evaluated."""


@dataclass(frozen=True, slots=True)
class Denied:
    used: int
    refusals: Sequence[Refusal]
    """Empty: no `allow` fits the path and the method."""
    exceeded: str | None = None
    """The limit that ended the evaluation; None: the conditions were all evaluated."""


Verdict = Allowed | Denied


def decide(ruleset: Ruleset, question: Question) -> Verdict:
    return decide_with(ruleset.blocks, ruleset.fewest_in_glob, question, [])


def decide_with(blocks: Blocks, fewest_in_glob: int, question: Question, trace: list[Any]) -> Verdict:
    """Decide over blocks that were compiled to count or record their values; `trace` takes what they record."""
    e = Evaluation(
        request=question.request,
        resource=question.resource,
        database=question.database,
        documents=question.documents,
        accesses=question.accesses,
        trace=trace,
    )
    path = ("databases", question.database, "documents", *question.path)
    refusals: list[Refusal] = []
    try:
        for block in blocks.get(question.method, ()):
            found = block.pattern.bindings(path, fewest_in_glob)
            if found is None:
                continue
            e.wild = found
            for statement in block.statements:
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
        return Denied(e.used, refusals, f"The maximum of {MAX_EXPRESSIONS} expressions to evaluate has been reached.")
    except RecursionError:  # functions that call each other multiply the depth that one expression may have
        return Denied(e.used, refusals, "The conditions are nested too deeply to be evaluated.")
    return Denied(e.used, refusals)
