"""The rules of a stream's targets: each is judged when it begins, and again when its verdict may have changed.

A verdict rests on the documents that the conditions read and, for a target of documents, on those documents. A commit
that touches one of them, or other rules, makes the target be judged again; a target that is refused then is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firestore_emulator.documents.names import Location, parse_parent
from firestore_emulator.documents.protos import Proto
from firestore_emulator.listen.targets import DocumentsTarget, Target
from firestore_emulator.meters.billing import RULES
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Engine

if TYPE_CHECKING:
    from firestore_emulator.rules.enforce import Enforcer


@dataclass(frozen=True, slots=True)
class _Verdict:
    rests_on: Set[Location]
    again: Callable[[], None]
    """Judges once more, and raises if the target is refused now."""
    read_by_rules: Set[Location] = frozenset()


class Judge:
    def __init__(self, engine: Engine, guard: Guard, call: Call) -> None:
        self._engine = engine
        self._guard = guard
        self._call = call
        self._verdicts: dict[int, _Verdict] = {}

    def begin(self, target: Target, asked: Proto, database: str) -> None:
        """PERMISSION_DENIED if the caller may not see what the target shows."""

        def judge() -> None:
            enforcer = self._guard.enforcer(self._call, database)
            if enforcer is None:
                self._verdicts[target.id] = _Verdict(frozenset(), judge)
                return
            rests_on = self._ask(enforcer, target, asked)
            self._verdicts[target.id] = _Verdict(rests_on, judge, frozenset(enforcer.dependencies))

        judge()

    def _ask(self, enforcer: Enforcer, target: Target, asked: Proto) -> set[Location]:
        if isinstance(target, DocumentsTarget):
            enforcer.get(target.locations)
            return enforcer.dependencies | set(target.locations)
        enforcer.list(parse_parent(asked.query.parent), asked.query.structured_query)
        return enforcer.dependencies

    def after(self, number: int, changed: Set[Location]) -> None:
        """Raises if a target is refused now that these documents are others. None of them: the rules are."""
        verdict = self._verdicts.get(number)
        if verdict is not None and (not changed or verdict.rests_on & changed):
            verdict.again()

    def bill_again(self, number: int) -> None:
        """Bills what the rules of a target read: production evaluates them with each change of its result."""
        verdict = self._verdicts.get(number)
        if verdict is not None and verdict.read_by_rules:
            self._engine.billing.read(RULES, verdict.read_by_rules)

    def forget(self, number: int) -> None:
        self._verdicts.pop(number, None)
