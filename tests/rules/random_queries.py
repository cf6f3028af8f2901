"""Random list conditions, each with a query whose filters often prove it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.rules.random_documents import INTS, STRINGS, UIDS, wire
from tests.rules.random_rules import literal


@dataclass(frozen=True)
class Asked:
    """A list condition and the query that is made under it."""

    condition: str
    query: dict[str, Any]


def listing(random: Random) -> Asked:
    """A condition over a few fields, and filters that often prove it."""
    values = {
        "i": INTS[:6],
        "s": (*STRINGS[1:7], "é😀", "～"),
        "u": UIDS,
        "b": (True, False),
        "l": INTS[:4],
        "m.a": INTS[:4],
    }
    names = random.sample(list(values), random.randint(1, 2))
    conditions: list[str] = []
    filters: list[dict[str, Any]] = []
    is_ranged = has_list = False
    for name in names:
        wanted = random.choice(values[name])
        choice = random.random()
        near = wanted if choice < 0.7 else random.choice(values[name])
        if name == "l" and not has_list:
            has_list = True
            conditions.append(random.choice((f"{wanted} in resource.data.l", f"resource.data.l.hasAny([{wanted}, 3])")))
            filters.append(_filter("l", "ARRAY_CONTAINS", near))
            continue
        operator, ranged = random.choice(_QUERY_OPERATORS)
        if ranged and (is_ranged or isinstance(wanted, bool) or name == "l"):
            operator, ranged = "EQUAL", False
        is_ranged = is_ranged or ranged
        conditions.append(_proven(random, f"resource.data.{name}", operator, wanted))
        if random.random() < 0.9:
            several = [near, random.choice(values[name])]
            filters.append(_filter(name, operator, several if operator in ("IN", "NOT_IN") else near))
    extra = random.random()
    query: dict[str, Any] = {}
    if extra < 0.15:
        limit = random.choice((5, 10, 11))
        query["limit"] = limit
        conditions.append(random.choice(("request.query.limit <= 10", f"request.query.limit == {limit}")))
    elif extra < 0.25 and not is_ranged:
        query["orderBy"] = [{"field": {"fieldPath": "s"}, "direction": random.choice(("ASCENDING", "DESCENDING"))}]
        conditions.append(f"request.query.orderBy.s == {random.choice((literal('ASC'), literal('DESC')))}")
    elif extra < 0.35:
        conditions.append(random.choice(_ABOUT_QUERIES))
    if len(filters) > 1:
        query["where"] = {"compositeFilter": {"op": "AND", "filters": filters}}
    elif filters:
        query["where"] = filters[0]
    joined = " && ".join(conditions) if random.random() < 0.85 else " || ".join(conditions)
    return Asked(joined, query)


_QUERY_OPERATORS = (
    *(("EQUAL", False),) * 6,
    *(("IN", False),) * 2,
    ("LESS_THAN", True),
    ("LESS_THAN_OR_EQUAL", True),
    ("GREATER_THAN", True),
    ("GREATER_THAN_OR_EQUAL", True),
    ("NOT_EQUAL", True),
)
_SIGNS = {
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
    "NOT_EQUAL": "!=",
    "EQUAL": "==",
}
_ABOUT_QUERIES = (
    "request.auth.uid == resource.data.u",
    "exists(/databases/$(database)/documents/a/$(resource.data.u))",
    "request.query.offset == 0",
    "resource.data.keys().hasAny(['s', 'i'])",
    "resource.data.get('zz', 1) == 1",
    "!('zz' in resource.data)",
    "resource.data.size() < 3",
    "request.method == 'list'",
    "resource.id == 'd'",
    "id == 'd'",
    "resource != null",
    "request.query.limit == null",
)


def _proven(random: Random, name: str, operator: str, value: Any) -> str:
    text = {True: "true", False: "false"}.get(value, str(value)) if not isinstance(value, str) else literal(value)
    if operator == "IN":
        return random.choice((f"{name} in [{text}, 'abc', 1, 2, 3]", f"{name} == {text}", f"{name} != null"))
    if operator == "EQUAL":
        kind = "string" if isinstance(value, str) else "bool" if isinstance(value, bool) else "int"
        return random.choice(
            (
                f"{name} == {text}",
                f"{name} == {text}",
                f"{name} in [{text}, 'zz']",
                f"{name} is {kind}",
                f"{name} != null",
            )
        )
    sign = _SIGNS[operator] if random.random() < 0.8 else random.choice(list(_SIGNS.values()))
    return random.choice(
        (f"{name} {sign} {text}", f"{name} {sign} {text}", f"!({name} in [{text}])", f"{name} != null")
    )


def _filter(name: str, operator: str, value: Any) -> dict[str, Any]:
    return {"fieldFilter": {"field": {"fieldPath": name}, "op": operator, "value": wire(value)}}
