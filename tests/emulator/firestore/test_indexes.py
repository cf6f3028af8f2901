"""Which queries production would serve with which indexes, and what is named when it would not.

The rules are those of Google's page "Index overview" (Standard edition); each case says what it shows.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firestore_emulator.queries.indexes import IndexFileError, IndexRules
from firestore_emulator.queries.query import Query
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage.engine import Engine
from tests.conformance.wire import Proto, Ref, all_of, any_of, query, where
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import examples, name, parsed, put

Json = dict[str, Any]


def index(*fields: str, group: bool = False) -> Json:
    """A composite index of collection c: `-x` descends, `@x` is for array-contains."""
    return {
        "collectionGroup": "c",
        "queryScope": "COLLECTION_GROUP" if group else "COLLECTION",
        "fields": [{"fieldPath": field.lstrip("-@"), **kind_of(field)} for field in fields],
    }


def override(path: str, *kinds: str) -> Json:
    """The single-field indexes of one field: `x`, `-x`, `@x`, with `*` behind for a collection group."""
    indexes = [
        {**kind_of(kind), "queryScope": "COLLECTION_GROUP" if kind.endswith("*") else "COLLECTION"} for kind in kinds
    ]
    return {"collectionGroup": "c", "fieldPath": path, "indexes": indexes}


def kind_of(field: str) -> Json:
    if field.startswith("@"):
        return {"arrayConfig": "CONTAINS"}
    return {"order": "DESCENDING" if field.startswith("-") else "ASCENDING"}


def rules(*entries: Json) -> IndexRules:
    return IndexRules.parse(file_of(entries))


def file_of(entries: Any) -> Json:
    return {
        "indexes": [one for one in entries if "fields" in one],
        "fieldOverrides": [one for one in entries if "fieldPath" in one],
    }


def suggestion(kept: IndexRules, question: Query) -> Json | None:
    """None if the query is served, else the entry that the refusal says to add."""
    refusal = refusal_of(kept, question)
    if refusal is None:
        return None
    assert refusal.code.name == "FAILED_PRECONDITION"
    entry: Json = json.loads(refusal.message.partition("firestore.indexes.json: ")[2])
    words = refusal.message.partition(". ")[0]  # production's, which SDKs look for
    if "fields" in entry:
        assert words == "The query requires an index"
    else:
        assert re.fullmatch(
            r"The query requires a COLLECTION(_GROUP)?_(ASC|DESC|CONTAINS) index for .* field .*", words
        )
    return entry


def refusal_of(kept: IndexRules, question: Query) -> RpcError | None:
    try:
        kept.check(question)
    except RpcError as refusal:
        return refusal
    return None


A, B = where("a", "==", 1), where("b", "==", 2)
TAG = where("t", "array-contains", "x")
EXEMPT_A = override("a")

SERVED: dict[str, tuple[Proto, list[Json]]] = {
    "everything in a collection": (query("c"), []),
    "everything in a group": (query("c", group=True), []),
    "by name": (query("c", where("__name__", ">", Ref(name("c/1"))), order=["__name__"]), []),
    "one equal field": (query("c", A), []),
    "one in": (query("c", where("a", "in", [1, 2])), []),
    "one range": (query("c", where("a", ">", 1)), []),
    "a range with two ends": (query("c", all_of(where("a", ">", 1), where("a", "<", 9))), []),
    "a range that is ordered by, descending": (query("c", where("a", ">", 1), order=["-a"]), []),
    "not equal": (query("c", where("a", "!=", 1)), []),
    "not in": (query("c", where("a", "not-in", [1])), []),
    "is null": (query("c", where("a", "is-null")), []),
    "one order": (query("c", order=["a"]), []),
    "one order, descending": (query("c", order=["-a"]), []),
    "one order and the name in its direction": (query("c", order=["-a", "-__name__"]), []),
    "array-contains": (query("c", TAG), []),
    "array-contains-any": (query("c", where("t", "array-contains-any", ["x", "y"])), []),
    "equal fields are merged from single fields": (query("c", all_of(A, B, where("m.k", "==", 3))), []),
    "array-contains is merged with equal fields": (query("c", all_of(A, TAG)), []),
    "an equal field and a range of names": (query("c", all_of(A, where("__name__", ">", Ref(name("c/1"))))), []),
    "alternatives each by their own field": (query("c", any_of(A, B)), []),
    "an order by a field that is compared for equality": (query("c", A, order=["a"]), []),
    "an equal field and a range": (query("c", all_of(A, where("b", ">", 1))), [index("a", "b")]),
    "the direction of an equal field is free": (query("c", A, order=["b"]), [index("-a", "b")]),
    "descending as asked": (query("c", A, order=["-b"]), [index("a", "-b")]),
    "equal fields in any order": (query("c", all_of(A, B), order=["d"]), [index("b", "a", "d")]),
    "two orders": (query("c", order=["a", "-b"]), [index("a", "-b")]),
    "two ranges, ordered by the first name": (
        query("c", all_of(where("b", ">", 1), where("a", ">", 1))),
        [index("a", "b")],
    ),
    "a range on another field than the order": (query("c", where("b", ">", 1), order=["a"]), [index("a", "b")]),
    "in beside a range": (query("c", all_of(where("a", "in", [1, 2]), where("b", ">", 1))), [index("a", "b")]),
    "array-contains and an order": (query("c", TAG, order=["a"]), [index("@t", "a")]),
    "array-contains-any uses the index of array-contains": (
        query("c", where("t", "array-contains-any", ["x", "y"]), order=["a"]),
        [index("@t", "a")],
    ),
    "two indexes merged": (query("c", all_of(A, B), order=["d"]), [index("a", "d"), index("b", "d")]),
    "three indexes merged, one with two fields": (
        query("c", all_of(A, B, where("e", "==", 1), TAG), order=["d"]),
        [index("a", "b", "d"), index("e", "d"), index("@t", "d")],
    ),
    "names downwards, indexed so": (query("c", order=["-__name__"]), [index("-__name__")]),
    "names downwards in a range, indexed so": (
        query("c", where("__name__", ">", Ref(name("c/a"))), order=["-__name__"]),
        [index("-__name__")],
    ),
    "a name against the direction, indexed so": (query("c", order=["a", "-__name__"]), [index("a", "-__name__")]),
    "a group with an index of its own": (query("c", A, group=True), [override("a", "a*")]),
    "a group by the other direction of an equal field": (query("c", A, group=True), [override("a", "-a*")]),
    "a group and array-contains": (query("c", TAG, group=True), [override("t", "@t*")]),
    "a group with a composite index": (query("c", A, order=["b"], group=True), [index("a", "b", group=True)]),
    "an exempt field in a composite index": (query("c", all_of(A, B)), [EXEMPT_A, index("a", "b")]),
    "the direction of an equal field is free, also of the last": (
        query("c", all_of(A, B)),
        [EXEMPT_A, index("a", "-b")],
    ),
    "a field with an entry of its own beside a star": (query("c", A), [override("*"), override("a", "a")]),
    "a field of a map with an entry of its own": (
        query("c", where("m.k", "==", 1)),
        [override("m"), override("m.k", "k")],
    ),
    "an exemption in another collection": (query("d", A), [EXEMPT_A]),
    "counting asks for no more than finding": (query("c", all_of(A, B)), []),
    "a star that gives groups": (query("c", A, group=True), [override("*", "a*")]),
}

REFUSED: dict[str, tuple[Proto, list[Json], Json]] = {
    "an equal field and a range": (query("c", all_of(A, where("b", ">", 1))), [], index("a", "b")),
    "an equal field and another order": (query("c", A, order=["-b"]), [], index("a", "-b")),
    "an index is not read backwards": (query("c", A, order=["-b"]), [index("a", "b")], index("a", "-b")),
    "nor with all its directions turned": (query("c", order=["-a", "b"]), [index("a", "-b")], index("-a", "b")),
    "two orders": (query("c", order=["a", "b"]), [], index("a", "b")),
    "orders the other way round": (query("c", order=["a", "b"]), [index("b", "a")], index("a", "b")),
    "two ranges": (query("c", all_of(where("b", ">", 1), where("a", "<", 1))), [], index("a", "b")),
    "names downwards": (query("c", order=["-__name__"]), [], index("-__name__")),
    "names downwards, with indexes of fields": (
        query("c", order=["-__name__"], limit=1),
        [index("a", "-__name__")],
        index("-__name__"),
    ),
    "a name against the direction": (query("c", order=["a", "-__name__"]), [], index("a", "-__name__")),
    "array-contains and an order": (query("c", TAG, order=["a"]), [], index("@t", "a")),
    "array-contains does not use a plain index": (query("c", TAG, order=["a"]), [index("t", "a")], index("@t", "a")),
    "one index too few to merge": (
        query("c", all_of(A, B, where("e", "==", 1)), order=["d"]),
        [index("a", "d"), index("b", "d")],
        index("a", "b", "e", "d"),
    ),
    "indexes with other ends do not merge": (
        query("c", all_of(A, B), order=["d"]),
        [index("a", "d"), index("b", "-d")],
        index("a", "b", "d"),
    ),
    "an index with one field too many": (query("c", A, order=["b"]), [index("a", "x", "b")], index("a", "b")),
    "an order field in front is not an equal field": (query("c", A, order=["b"]), [index("b", "a")], index("a", "b")),
    "one alternative of two": (
        query("c", any_of(all_of(A, where("b", ">", 1)), all_of(where("e", "==", 1), where("b", ">", 1)))),
        [index("a", "b")],
        index("e", "b"),
    ),
    "another collection's index": (
        query("d", A, order=["b"]),
        [index("a", "b")],
        index("a", "b") | {"collectionGroup": "d"},
    ),
    "a group does not use a collection's index": (
        query("c", A, order=["b"], group=True),
        [index("a", "b")],
        index("a", "b", group=True),
    ),
    "a collection does not use a group's index": (
        query("c", A, order=["b"]),
        [index("a", "b", group=True)],
        index("a", "b"),
    ),
    "a group has no single fields by default": (
        query("c", A, group=True),
        [],
        override("a", "a", "@a", "-a", "a*"),
    ),
    "a group in another direction": (
        query("c", order=["-a"], group=True),
        [override("a", "a*")],
        override("a", "a*", "-a*"),
    ),
    "an exempt field": (query("c", A), [EXEMPT_A], override("a", "a")),
    "an exempt field in a range": (query("c", where("a", ">", 1), order=["-a"]), [EXEMPT_A], override("a", "-a")),
    "a field with only one direction": (query("c", order=["-a"]), [override("a", "a")], override("a", "a", "-a")),
    "a field without array-contains": (query("c", TAG), [override("t", "t")], override("t", "t", "@t")),
    "a star takes all fields": (query("c", A), [override("*")], override("a", "a")),
    "what is below an exempt map": (query("c", where("m.k", "==", 1)), [override("m")], override("m.k", "k")),
    "a field far below an exempt map": (query("c", order=["m.k.l"]), [override("m")], override("m.k.l", "l")),
    "one exempt field of two": (query("c", all_of(A, B)), [EXEMPT_A], index("a", "b")),
}


@pytest.mark.parametrize("case", SERVED)
def test_served(case: str) -> None:
    proto, entries = SERVED[case]
    assert suggestion(rules(*entries), parsed(proto)) is None


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_index_to_add(case: str) -> None:
    proto, entries, wanted = REFUSED[case]
    assert normal(suggestion(rules(*entries), parsed(proto))) == normal(wanted)


@pytest.mark.parametrize("case", REFUSED)
def test_with_the_index_that_was_named_it_is_served(case: str) -> None:
    proto, entries, wanted = REFUSED[case]
    assert suggestion(rules(*entries, wanted), parsed(proto)) is None


def normal(entry: Json | None) -> Json | None:
    """The order of the single-field indexes of one entry means nothing."""
    if entry is None or "indexes" not in entry:
        return entry
    return entry | {"indexes": sorted(entry["indexes"], key=lambda one: json.dumps(one, sort_keys=True))}


# --- any query, any indexes

fields = st.sampled_from(["a", "b", "t", "m.k", "-a", "-b", "-m.k", "@t"])
composites = st.builds(
    lambda parts, group: index(*parts, group=group),
    st.lists(fields, min_size=2, max_size=3, unique_by=lambda field: field.lstrip("-@")),
    st.booleans(),
)
overrides = st.builds(
    lambda path, kinds: override(path, *kinds),
    st.sampled_from(["a", "b", "t", "m", "m.k", "*"]),
    st.lists(st.sampled_from(["a", "-a", "@a", "a*", "-a*", "@a*"]), max_size=3, unique=True),
)
queries = chance.randomness.map(chance.structured_query)
kept_entries = st.lists(st.one_of(composites, overrides), max_size=4)


@given(queries, kept_entries)
@examples(200)
def test_adding_what_refusals_name_serves_the_query_within_as_many_steps_as_it_has_alternatives(
    proto: Proto, entries: list[Json]
) -> None:
    question = valid(proto)
    for _ in range(len(question.alternatives)):
        wanted = suggestion(rules(*entries), question)
        if wanted is None:
            return
        entries = [*entries, wanted]
    assert suggestion(rules(*entries), question) is None


@given(queries, st.lists(queries, min_size=4, max_size=8), kept_entries)
@examples(100)
def test_following_a_suggestion_takes_nothing_from_other_queries(
    proto: Proto, others: list[Proto], entries: list[Json]
) -> None:
    wanted = suggestion(rules(*entries), valid(proto))
    assume(wanted is not None)
    for other in others:
        try:
            question = parsed(other)
        except RpcError:
            continue
        if suggestion(rules(*entries), question) is None:
            assert suggestion(rules(*entries, wanted or {}), question) is None


def valid(proto: Proto) -> Query:
    try:
        return parsed(proto)
    except RpcError:
        assume(False)
        raise


# --- in the engine


def test_the_engine_refuses_queries_and_counts_alike_and_still_stores() -> None:
    engine = Engine(index_rules=rules())
    put(engine, "c/1", {"a": 1, "b": 2})
    served, refused = parsed(query("c", A)), parsed(query("c", A, order=["b"]))
    assert len(engine.run(served)) == engine.count(served, None) == 1
    for ask in (lambda: engine.run(refused), lambda: engine.count(refused, None), lambda: engine.run(refused, 0)):
        with pytest.raises(RpcError, match=r"The query requires an? "):
            ask()
    engine.close()


def test_a_sum_needs_the_summed_field_in_the_index() -> None:
    question = parse_query(parsed(query("c")).parent, query("c", A), frozenset({("n",)}))
    assert suggestion(rules(), question) == index("a", "n")
    assert suggestion(rules(index("a", "n")), question) is None
    alone = parse_query(parsed(query("c")).parent, query("c"), frozenset({("n",)}))
    assert suggestion(rules(), alone) is None


# --- the file


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("\xff", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"indexes": null}', "indexes is a list"),
        ('{"indexes": 5}', "indexes is a list"),
        ('{"fieldOverrides": {}}', "fieldOverrides is a list"),
        ('{"indexes": ["x"]}', r"indexes\[0\]"),
        ('{"indexes": [{"collectionGroup": "c"}]}', r"indexes\[0\] has no fields"),
        ('{"indexes": [{"collectionGroup": "c", "fields": [{}]}]}', r"indexes\[0\]\.fields\[0\] has no fieldPath"),
        ('{"indexes": [{"collectionGroup": "c", "fields": [7]}]}', r"indexes\[0\]\.fields\[0\]"),
        (
            '{"indexes": [{"fields": [{"fieldPath": "a", "order": "ASCENDING"}]}]}',
            r"indexes\[0\] has no collectionGroup",
        ),
        ('{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a..b"}]}]}', r"fields\[0\]"),
        (
            '{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "UP"}]}]}',
            "'UP' is not one of",
        ),
        (
            '{"indexes": [{"collectionGroup": "c", "queryScope": "ALL", "fields": [{"fieldPath": "a"}]}]}',
            "'ALL' is not one of COLLECTION, COLLECTION_GROUP",
        ),
        ('{"fieldOverrides": [{"collectionGroup": "c"}]}', r"fieldOverrides\[0\] has no fieldPath"),
        ('{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": [1]}]}', r"fieldOverrides\[0\]"),
        ('{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": [{}]}]}', r"fieldOverrides\[0\]"),
        ('{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": null}]}', r"fieldOverrides\[0\]"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_with_its_name_and_the_place(
    tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "firestore.indexes.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(IndexFileError, match=words) as refused:
        IndexRules.load(file)
    assert str(file) in str(refused.value)


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(IndexFileError, match=r"nowhere\.json cannot be read: No such file"):
        IndexRules.load(tmp_path / "nowhere.json")
    with pytest.raises(IndexFileError, match="cannot be read"):
        IndexRules.load(tmp_path)


def test_what_the_firebase_tools_write_besides_is_taken_as_it_is() -> None:
    kept = IndexRules.parse(
        {
            "indexes": [index("a", "b") | {"density": "SPARSE_ALL", "apiScope": "ANY_API"}],
            "fieldOverrides": [override("x", "x") | {"ttl": True}],
        }
    )
    assert suggestion(kept, parsed(query("c", A, order=["b"]))) is None
