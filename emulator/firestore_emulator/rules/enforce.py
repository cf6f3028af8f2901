"""Judge every call by the rules of its project.

The verdict and the read or write are one step of the event loop, so nothing can change between them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import grpc

from firestore_emulator.documents.fields import NAME_PATH, format_field_path, parse_field_path
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.writes import CheckedWrite, DraftState, apply_write
from firestore_emulator.meters.billing import RULES
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.rules.coverage import Coverage
from firestore_emulator.rules.decide import Allowed, Denied, Question, decide_with
from firestore_emulator.rules.evaluation import UNDEFINED, Accesses
from firestore_emulator.rules.explain import Step, explained, recording
from firestore_emulator.rules.guard import Guard, Refused, project_of
from firestore_emulator.rules.guard_queries import (
    Alternative,
    alternatives,
    asked_path,
    named_document,
    query_map,
    selected_fields,
)
from firestore_emulator.rules.guard_values import claim_value, document_map, document_path
from firestore_emulator.rules.identity import Anonymous, User
from firestore_emulator.rules.prove import Unprovable, known_data
from firestore_emulator.rules.ruleset import Blocks, Ruleset
from firestore_emulator.rules.values import Path, Timestamp, Value
from firestore_emulator.storage.engine import Engine

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 1_500
"""Characters. A status message travels in a header, and servers limit headers."""


@dataclass
class Loaded:
    """Rules in force, and the values that their expressions have had."""

    ruleset: Ruleset
    coverage: Coverage = field(init=False)

    def __post_init__(self) -> None:
        self.coverage = Coverage(self.ruleset)
        self.blocks = self.ruleset.compiled(self.coverage.counting)

    @cached_property
    def explaining(self) -> Blocks:
        """The same rules, compiled to leave a trace. A refused question is evaluated a second time with them."""
        return self.ruleset.compiled(recording)


class _State:
    """The documents that rules may read: as they are now, as they were at a time, or as a commit would leave them."""

    def __init__(
        self, engine: Engine, database: str, at_micros: int | None, drafts: dict[Location, DraftState]
    ) -> None:
        self._engine = engine
        self._database = database
        self._at = at_micros
        self._drafts = drafts
        self._known: dict[tuple[Location, bool], dict[str, Value] | None] = {}
        self.read: set[Location] = set()

    def document(self, segments: tuple[str, ...], *, after: bool) -> dict[str, Value] | None:
        location = Location(self._database, segments)
        if location not in self.read:
            self.read.add(location)
            self._engine.billing.read(RULES, [location])
        return self.at(location, after=after)

    def at(self, location: Location, *, after: bool) -> dict[str, Value] | None:
        key = (location, after)
        if key not in self._known:
            draft = self._drafts.get(location)
            if draft is not None:
                found = draft.current if after else draft.stored
            else:
                found = None if any("/" in part for part in location.segments) else self._engine.get(location, self._at)
            self._known[key] = None if found is None else document_map(location, found)
        return self._known[key]


class Enforcer:
    """The rules of one call. Its verdicts share the limits on document accesses."""

    def __init__(self, guard: Guard, engine: Engine, loaded: Loaded, database: str, identity: User | Anonymous) -> None:
        self._guard = guard
        self._engine = engine
        self._loaded = loaded
        self._database = database
        self._uid = identity.uid if isinstance(identity, User) else None
        self._auth: Value = None
        if isinstance(identity, User):
            self._auth = {"token": claim_value(dict(identity.claims)), "uid": identity.uid}
        self._accesses = Accesses()
        self.dependencies: set[Location] = set()
        """The documents that rules have read for the verdicts so far."""

    # --- the calls

    def get(self, locations: Iterable[Location], at_micros: int | None = None, *, in_transaction: bool = False) -> None:
        """Raise PERMISSION_DENIED unless the rules allow a get of each document."""
        state = _State(self._engine, self._database, at_micros, {})
        micros = self._engine.now_micros()
        for location in locations:
            request = self._request("get", micros, in_transaction=in_transaction)
            request |= {"fields": None, "path": document_path(location)}
            self._ask("get", location.segments, request, state.at(location, after=False), state, micros)
        self.dependencies |= state.read

    def list(
        self, parent: Location, query: Proto, at_micros: int | None = None, *, in_transaction: bool = False
    ) -> None:
        """Raise PERMISSION_DENIED unless the rules allow every document that the query could find."""
        state = _State(self._engine, self._database, at_micros, {})
        micros = self._engine.now_micros()
        asked = query_map(parent, query)
        fields = selected_fields(query)
        path = asked_path(parent, query)
        for alternative in alternatives(query):
            request = self._request("list", micros, in_transaction=in_transaction)
            request |= {"fields": fields, "query": asked}
            named = named_document(alternative, self._database)
            if named is not None:
                self._list_named(named, request, state, micros)
            else:
                self._list_alternative(alternative, path, request, state, micros)
        self.dependencies |= state.read

    def _list_named(self, location: Location, request: dict[str, Value], state: _State, micros: int) -> None:
        """A document's name is in the filter, so the document itself is looked at."""
        request["path"] = document_path(location)
        found = state.at(location, after=False)
        self.dependencies.add(location)
        self._ask("list", location.segments, request, UNDEFINED if found is None else found, state, micros)

    def _list_alternative(
        self, alternative: Alternative, path: tuple[Value, ...], request: dict[str, Value], state: _State, micros: int
    ) -> None:
        known = [part for part in path[:-1] if isinstance(part, str)]
        if len(known) == len(path) - 1:  # a group of collections has no path of its own
            request["path"] = Path(("databases", self._database.rpartition("/")[2], "documents", *known))
        filters = [one for one in alternative if one.path != NAME_PATH]
        try:
            resource: Value = {"data": known_data(filters)}
        except Unprovable:
            reasons = ["The filters of the query contradict each other, so they prove nothing."]
            raise self._refusal("list", path, reasons, micros) from None
        self._ask("list", path, request, resource, state, micros)

    def writes(self, writes: Sequence[CheckedWrite], micros: int) -> None:
        """Raise PERMISSION_DENIED unless each document may become what all writes together make of it.

        Rules come before preconditions, which only decide here whether a write is a create or an update.
        """
        drafts: dict[Location, DraftState] = {}
        first: dict[Location, CheckedWrite] = {}
        by_location: dict[Location, list[CheckedWrite]] = {}
        for write in writes:
            if write.is_verify:
                continue
            draft = drafts.get(write.location)
            if draft is None:
                stored = self._engine.get(write.location)
                draft = drafts[write.location] = DraftState(stored=stored, current=stored)
                first[write.location] = write
            by_location.setdefault(write.location, []).append(write)
            apply_write(write._replace(must_exist=None, must_have_update_time=None), draft, micros)
        state = _State(self._engine, self._database, None, drafts)
        for location, draft in drafts.items():
            method = _method(first[location], draft)
            request = self._request(method, micros, in_transaction=True)
            request |= {
                "path": document_path(location),
                "readFields": None,
                "resource": state.at(location, after=True),
                "transforms": _transforms(by_location[location]),
                "writeFields": _written_fields(by_location[location]),
            }
            self._ask(method, location.segments, request, state.at(location, after=False), state, micros)

    # --- verdicts

    def _request(self, method: str, micros: int, *, in_transaction: bool) -> dict[str, Value]:
        return {
            "auth": self._auth,
            "headers": {},
            "inTransaction": in_transaction,
            "method": method,
            "time": Timestamp(micros // 1000 * 10**6),
        }

    def _ask(
        self,
        method: str,
        path: tuple[Value, ...],
        request: dict[str, Value],
        resource: Value,
        state: _State,
        micros: int,
    ) -> None:
        question = Question(
            method=method,
            database=self._database.rpartition("/")[2],
            path=path,
            request=request,
            resource=resource,
            documents=state,
            accesses=self._accesses,
        )
        used = set(self._accesses.keys)
        fewest = self._loaded.ruleset.fewest_in_glob
        if isinstance(decide_with(self._loaded.blocks, fewest, question, []), Allowed):
            return
        trace: list[Step] = []
        again = replace(question, accesses=Accesses(used))
        verdict = decide_with(self._loaded.explaining, fewest, again, trace)
        assert isinstance(verdict, Denied), "nothing changes within a step"
        raise self._refusal(method, path, _reasons(self._loaded.ruleset, verdict, trace), micros)

    def _refusal(self, method: str, path: tuple[Value, ...], reasons: Sequence[str], micros: int) -> RpcError:
        refused = Refused(
            project=project_of(self._database),
            method=method,
            path="/".join(part if isinstance(part, str) else "*" for part in path),
            uid=self._uid,
            micros=micros,
            reasons=reasons,
        )
        self._guard.refusals.append(refused)
        log.info("%s", refused, extra={"action": "rules_refused", "method": method, "path": refused.path})
        text = str(refused)
        message = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
        return RpcError(grpc.StatusCode.PERMISSION_DENIED, message)


def _reasons(ruleset: Ruleset, denied: Denied, trace: list[Step]) -> list[str]:
    if denied.exceeded is not None:
        return [denied.exceeded]
    if not denied.refusals:
        return ["No matching allow statements"]
    return explained(ruleset.source, trace, [refusal.statement for refusal in denied.refusals])


def _method(write: CheckedWrite, draft: DraftState) -> str:
    if draft.current is None:
        return "delete"
    if write.must_exist is not None:
        return "update" if write.must_exist else "create"
    if write.must_have_update_time is not None:
        return "update"
    return "create" if draft.stored is None else "update"


def _transforms(writes: Sequence[CheckedWrite]) -> Value:
    paths = [transform.field_path for write in writes for transform in write.transforms]
    return paths or None


def _written_fields(writes: Sequence[CheckedWrite]) -> Value:
    """`request.writeFields`; null where the whole document is written."""
    found: list[Value] = []
    for write in writes:
        if write.mask is None and write.document is not None:
            return None
        found += [format_field_path(parse_field_path(transform.field_path)) for transform in write.transforms]
        found += [format_field_path(path) for path in write.mask or ()]
    return found or None
