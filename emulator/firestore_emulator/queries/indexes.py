"""Which queries production would serve, given `firestore.indexes.json`.

Google's emulator serves every query, so a missing index shows only in production. Here it shows at once: a query that
production would refuse is refused with FAILED_PRECONDITION and the index to add.

Production's rules, as documented:
- every field has ascending, descending and array indexes of its own for queries on one collection, unless a field
  override takes them away; for collection groups only if an override adds them;
- equality filters alone may be merged from indexes of single fields;
- everything else needs composite indexes: each holds some of the equal fields, in any order, then exactly the ordered
  fields; several such indexes may be merged if together they hold all equal fields;
- directions must be as asked for: an index is not read backwards. Only those of equal fields are free;
- a field override holds for everything below a map field too, unless a longer path has one of its own; `*` is for
  all fields that have none.

This is about permission only. How the engine itself finds documents is in `plan.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firestore_emulator.documents.fields import NAME_PATH, FieldPath, format_field_path, parse_field_path
from firestore_emulator.queries.query import Conjunction, Op, Query
from firestore_emulator.rpc.errors import RpcError, failed_precondition

ASCENDING, DESCENDING, CONTAINS = "ASCENDING", "DESCENDING", "CONTAINS"

IndexPart = tuple[FieldPath, str]

MOST_KNOWN = 1_000
"""An app has tens of queries; a test of random ones must not fill the memory."""

_NAMES_DOWN: tuple[IndexPart, ...] = ((NAME_PATH, DESCENDING),)
_SHORT_KINDS = {ASCENDING: "ASC", DESCENDING: "DESC", CONTAINS: "CONTAINS"}
"""As production's refusals name them."""
_DEFAULT_SINGLES = frozenset({(ASCENDING, False), (DESCENDING, False), (CONTAINS, False)})


class IndexFileError(ValueError):
    """firestore.indexes.json cannot be understood; the message says where."""


@dataclass(frozen=True, slots=True)
class CompositeIndex:
    collection_id: str
    group_scope: bool
    parts: tuple[IndexPart, ...]
    """As written, with the name as the last part."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What one alternative of a query needs of an index."""

    equal: frozenset[FieldPath]
    contains: FieldPath | None
    ordered: tuple[IndexPart, ...]
    """Without the equal fields, with the name as the last part."""


class IndexRules:
    def __init__(
        self,
        composites: tuple[CompositeIndex, ...],
        overrides: Mapping[tuple[str, FieldPath], frozenset[tuple[str, bool]]],
    ) -> None:
        self._composites: dict[str, tuple[CompositeIndex, ...]] = {}
        for index in composites:
            self._composites[index.collection_id] = (*self.composites_of(index.collection_id), index)
        self._overrides = overrides
        self._known: set[tuple[str, bool, Needs]] = set()
        """What was found to be served, so that a query that comes often is looked at once."""

    @classmethod
    def load(cls, path: Path) -> IndexRules:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise IndexFileError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise IndexFileError(f"{path} is not JSON: {error}") from None
        try:
            return cls.parse(content)
        except IndexFileError as error:
            raise IndexFileError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, content: Any) -> IndexRules:
        if not isinstance(content, dict):
            raise IndexFileError("the file must hold an object with `indexes` and `fieldOverrides`")
        composites = tuple(
            _composite(item, f"indexes[{n}]") for n, item in enumerate(_list(content, "indexes", "the file"))
        )
        overrides = {}
        for n, item in enumerate(_list(content, "fieldOverrides", "the file")):
            where = f"fieldOverrides[{n}]"
            key = (_text(item, "collectionGroup", where), _path(_text(item, "fieldPath", where), where))
            overrides[key] = frozenset(_single(index, where) for index in _list(item, "indexes", where))
        return cls(composites, overrides)

    def check(self, query: Query) -> None:
        """Raises FAILED_PRECONDITION if production would have no index for the query."""
        if query.collection_id is None:
            return
        if query.is_by_name_alone:
            if query.orders[0].descending and not self._has_names_down(query):
                raise self._refusal(query, Needs(frozenset(), None, _NAMES_DOWN))
            return
        for alternative in query.alternatives:
            needs = _needs(query, alternative)
            known = (query.collection_id, query.descendants, needs)
            if known in self._known:
                continue
            if not self._served(query, needs):
                raise self._refusal(query, needs)
            if len(self._known) < MOST_KNOWN:
                self._known.add(known)

    def singles(self, collection_id: str, path: FieldPath) -> frozenset[tuple[str, bool]]:
        """The indexes of one field that are kept, each with whether it spans a collection group."""
        for length in range(len(path), 0, -1):
            override = self._overrides.get((collection_id, path[:length]))
            if override is not None:
                return override
        return self._overrides.get((collection_id, ("*",)), _DEFAULT_SINGLES)

    def composites_of(self, collection_id: str) -> tuple[CompositeIndex, ...]:
        return self._composites.get(collection_id, ())

    def _has_names_down(self, query: Query) -> bool:
        """Below a document production refuses such a scan of a collection group, whatever indexes there are."""
        if query.descendants and query.parent.segments:
            return False
        composites = self.composites_of(query.collection_id or "")
        return any(one.parts == _NAMES_DOWN and one.group_scope == query.descendants for one in composites)

    def _served(self, query: Query, needs: Needs) -> bool:
        filters = set(needs.equal) | ({needs.contains} if needs.contains else set())
        ordered_fields = needs.ordered[:-1]
        if not ordered_fields and not filters:
            return True
        if not filters and len(ordered_fields) == 1:
            # The name must go the way of the field: an index of one field has it so.
            path, direction = ordered_fields[0]
            if needs.ordered[-1][1] == direction and self._has_single(query, path, direction):
                return True
        covered: set[FieldPath] = set()
        for prefix in self._usable_prefixes(query, needs):
            covered |= prefix
        if not ordered_fields:
            kinds = (ASCENDING, DESCENDING)
            covered |= {path for path in needs.equal if any(self._has_single(query, path, kind) for kind in kinds)}
            if needs.contains and self._has_single(query, needs.contains, CONTAINS):
                covered.add(needs.contains)
            return filters <= covered
        if not filters:
            return any(True for _ in self._usable_prefixes(query, needs))
        return filters <= covered

    def _usable_prefixes(self, query: Query, needs: Needs) -> Iterator[set[FieldPath]]:
        """The filter fields of each composite index that could take part in serving the query."""
        assert query.collection_id is not None
        for index in self.composites_of(query.collection_id):
            if index.group_scope != query.descendants:
                continue
            front, back = index.parts[: -len(needs.ordered)], index.parts[-len(needs.ordered) :]
            # With nothing to order by, the direction in which the index has the names is all the same.
            if back != needs.ordered and len(needs.ordered) > 1:
                continue
            if all(self._filters(part, needs) for part in front):
                yield {path for path, _ in front}

    def _filters(self, part: IndexPart, needs: Needs) -> bool:
        path, kind = part
        return path == needs.contains if kind == CONTAINS else path in needs.equal

    def _has_single(self, query: Query, path: FieldPath, kind: str) -> bool:
        return (kind, query.descendants) in self._singles(query, path)

    def _singles(self, query: Query, path: FieldPath) -> frozenset[tuple[str, bool]]:
        assert query.collection_id is not None
        return self.singles(query.collection_id, path)

    def _refusal(self, query: Query, needs: Needs) -> RpcError:
        parts: list[IndexPart] = [(path, ASCENDING) for path in sorted(needs.equal)]
        if needs.contains:
            parts.append((needs.contains, CONTAINS))
        parts.extend(needs.ordered[:-1])
        if needs.ordered[-1][1] != (needs.ordered[-2][1] if len(needs.ordered) > 1 else ASCENDING):
            parts.append(needs.ordered[-1])
        if len(parts) == 1 and parts[0][0] != NAME_PATH:
            path, kind = parts[0]
            # An override replaces what was kept before, so all of that is named again.
            kept = sorted({*self._singles(query, path), (kind, query.descendants)}, key=lambda one: (one[1], one[0]))
            override = {
                "collectionGroup": query.collection_id,
                "fieldPath": format_field_path(path),
                "indexes": [{**_kind_of(one), "queryScope": _scope_name(group)} for one, group in kept],
            }
            scope = _scope_name(query.descendants)
            return failed_precondition(
                f"The query requires a {scope}_{_SHORT_KINDS[kind]} index for collection {query.collection_id} "
                f"and field {format_field_path(path)}. "
                f"Add to fieldOverrides in firestore.indexes.json: {json.dumps(override)}"
            )
        wanted = {
            "collectionGroup": query.collection_id,
            "queryScope": _scope_name(query.descendants),
            "fields": [{"fieldPath": format_field_path(path), **_kind_of(kind)} for path, kind in parts],
        }
        return failed_precondition(
            f"The query requires an index. Add to indexes in firestore.indexes.json: {json.dumps(wanted)}"
        )


def _needs(query: Query, alternative: Conjunction) -> Needs:
    equal = {p.path for p in alternative if p.op is Op.EQUAL} - {NAME_PATH}
    unequal = {p.path for p in alternative if p.op not in (Op.EQUAL, Op.CONTAINS)}
    equal -= unequal
    contains = next((p.path for p in alternative if p.contains), None)
    ordered = tuple(
        (order.path, DESCENDING if order.descending else ASCENDING)
        for order in query.orders
        if order.path == NAME_PATH or order.path not in equal
    )
    return Needs(frozenset(equal), contains, ordered)


def _scope_name(group: bool) -> str:
    return "COLLECTION_GROUP" if group else "COLLECTION"


def _kind_of(kind: str) -> dict[str, str]:
    return {"arrayConfig": CONTAINS} if kind == CONTAINS else {"order": kind}


# --- reading the file ------------------------------------------------------------------------------------------------


def _composite(item: Any, where: str) -> CompositeIndex:
    parts: list[IndexPart] = []
    fields = _list(item, "fields", where)
    if not fields:
        raise IndexFileError(f"{where} has no fields")
    for n, entry in enumerate(fields):
        at = f"{where}.fields[{n}]"
        path = _path(_text(entry, "fieldPath", at), at)
        if "arrayConfig" in entry:
            parts.append((path, _one_of(entry["arrayConfig"], (CONTAINS,), at)))
        elif "vectorConfig" in entry:
            continue
        else:
            parts.append((path, _one_of(entry.get("order", ASCENDING), (ASCENDING, DESCENDING), at)))
    if parts and parts[-1][0] != NAME_PATH:
        last = parts[-1][1]
        parts.append((NAME_PATH, last if last != CONTAINS else ASCENDING))
    return CompositeIndex(_text(item, "collectionGroup", where), _group_scope(item, where), tuple(parts))


def _list(item: Any, name: str, where: str) -> list[Any]:
    value = item.get(name, []) if isinstance(item, dict) else None
    if not isinstance(value, list):
        raise IndexFileError(f"{where} must be an object whose {name} is a list")
    return value


def _single(item: Any, where: str) -> tuple[str, bool]:
    if not isinstance(item, dict):
        raise IndexFileError(f"{where}: an index must be an object")
    if "arrayConfig" in item:
        return _one_of(item["arrayConfig"], (CONTAINS,), where), _group_scope(item, where)
    return _one_of(item.get("order"), (ASCENDING, DESCENDING), where), _group_scope(item, where)


def _group_scope(item: Any, where: str) -> bool:
    scopes = ("COLLECTION", "COLLECTION_GROUP")
    return _one_of(item.get("queryScope", "COLLECTION"), scopes, where) == "COLLECTION_GROUP"


def _text(item: Any, name: str, where: str) -> str:
    value = item.get(name) if isinstance(item, dict) else None
    if not isinstance(value, str) or not value:
        raise IndexFileError(f"{where} has no {name}")
    return value


def _path(text: str, where: str) -> FieldPath:
    if text == "*":
        return ("*",)
    try:
        return parse_field_path(text)
    except RpcError as error:
        raise IndexFileError(f"{where}: {error.message}") from None


def _one_of(value: Any, allowed: tuple[str, ...], where: str) -> str:
    if value not in allowed:
        raise IndexFileError(f"{where}: {value!r} is not one of {', '.join(allowed)}")
    return str(value)
