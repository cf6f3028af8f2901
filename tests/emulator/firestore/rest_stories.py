"""What is asked of both emulators over HTTP, as stories: each on a database of its own, one request after the other."""

from __future__ import annotations

from typing import Any

from tests.emulator.firestore.rest_story import Ask


def integers(**values: int) -> dict[str, Any]:
    return {"fields": {key: {"integerValue": str(value)} for key, value in values.items()}}


def update(path: str, **values: int) -> dict[str, Any]:
    return {"update": {"name": f"<root>/{path}", **integers(**values)}}


def commit(*writes: Any, **options: Any) -> Ask:
    return Ask("POST", ":commit", {"writes": list(writes), **options})


def run(asked: dict[str, Any], parent: str = "", **options: Any) -> Ask:
    return Ask("POST", f"{parent}:runQuery", {"structuredQuery": asked, **options})


def of(collection: str, **parts: Any) -> dict[str, Any]:
    return {"from": [{"collectionId": collection}], **parts}


def filtered(path: str, operator: Any, **value: Any) -> dict[str, Any]:
    return {"fieldFilter": {"field": {"fieldPath": path}, "op": operator, "value": value}}


def verify(path: str, **condition: Any) -> dict[str, Any]:
    """What the web SDK sends for a document that a transaction read and did not write."""
    return {"verify": f"<root>/{path}", "currentDocument": condition}


SEED = commit(update("c/a", n=1), update("c/b", n=2), update("c/d", n=3), update("c/a/s/1"), update("gone/1/s/2"))

EVERY_TYPE = {
    "fields": {
        "null": {"nullValue": None},
        "no": {"booleanValue": False},
        "integer": {"integerValue": "-9223372036854775808"},
        "small": {"integerValue": 7},
        "double": {"doubleValue": 1.5},
        "whole": {"doubleValue": 2},
        "nan": {"doubleValue": "NaN"},
        "infinite": {"doubleValue": "-Infinity"},
        "time": {"timestampValue": "2024-01-01T01:00:00.123456789+01:00"},
        "text": {"stringValue": 'é "\\\n\u0000 😀'},
        "empty": {"stringValue": ""},
        "bytes": {"bytesValue": "/+8="},
        "url-safe bytes": {"bytesValue": "_-8"},
        "reference": {"referenceValue": "<root>/c/a"},
        "point": {"geoPointValue": {"latitude": 1.25, "longitude": -2}},
        "origin": {"geoPointValue": {}},
        "array": {
            "arrayValue": {"values": [{"integerValue": 1}, {"mapValue": {"fields": {"k": {"nullValue": None}}}}]}
        },
        "no elements": {"arrayValue": {}},
        "map": {"mapValue": {"fields": {"a.b`c": {"stringValue": "x"}}}},
        "no fields": {"mapValue": {}},
    }
}

BAD_FIELDS: list[Any] = [
    {"a": {}},
    {"a": None},
    {"a": 1},
    [],
    {"a": {"stringVal": "x"}},
    {"a": {"integerValue": "x"}},
    {"a": {"integerValue": 1.5}},
    {"a": {"integerValue": "9223372036854775808"}},
    {"a": {"integerValue": 1, "stringValue": "a"}},
    {"a": {"timestampValue": "yesterday"}},
    {"a": {"timestampValue": "10000-01-01T00:00:00Z"}},
    {"a": {"doubleValue": "one"}},
    {"a": {"geoPointValue": {"latitude": 91}}},
    {"a": {"arrayValue": {"values": [{"arrayValue": {}}]}}},
]

DATABASE = "projects/<project>/databases/(default)"
BULK_DELETE = "//emulator/v1/projects/<project>:bulkDelete"

STORIES: dict[str, list[Ask]] = {
    "a document is created, read and refused a second time": [
        Ask("POST", "/c?documentId=a", integers(n=1)),
        Ask("GET", "/c/a"),
        Ask("POST", "/c?documentId=a", integers(n=2)),
        Ask("POST", "/c/a/s?documentId=1", {}),
        Ask("GET", "/c/a/s/1"),
        Ask("GET", "/c/none"),
        Ask("POST", "/c?documentId=masked&mask.fieldPaths=n", integers(n=1, m=2)),
        Ask("POST", "/c?documentId=with-name", {"name": "<root>/c/with-name"}),
        Ask("POST", "/c?documentId=x%2Fy", {}),
        Ask("POST", "/?documentId=x", {}),
        Ask("POST", "/c/a", {}),
        Ask("POST", "/c/?documentId=x", {}),
    ],
    "every type of value survives": [Ask("POST", "/c?documentId=a", EVERY_TYPE), Ask("GET", "/c/a")],
    "an empty body is an empty message": [
        Ask("POST", "/c?documentId=a", ""),
        Ask("POST", ":commit", ""),
        Ask("POST", ":listCollectionIds", ""),
    ],
    "a document is updated as a whole, by mask, and under conditions": [
        Ask("PATCH", "/c/a", integers(n=1, m=1)),
        Ask("PATCH", "/c/a?updateMask.fieldPaths=n&updateMask.fieldPaths=gone", integers(n=2)),
        Ask("PATCH", "/c/a?updateMask.fieldPaths=m", {}),
        Ask("PATCH", "/c/a?mask.fieldPaths=none", integers(n=3)),
        Ask("PATCH", "/c/a?currentDocument.exists=false", integers(n=4)),
        Ask("PATCH", "/c/b?currentDocument.exists=true", integers(n=5)),
        Ask("PATCH", "/c/b?currentDocument.exists=false", integers(n=6)),
        Ask("PATCH", "/c/b?currentDocument.updateTime=2024-01-01T00:00:00Z", integers(n=8)),
        Ask("PATCH", "/c/b?current_document.exists=true&update_mask.field_paths=n", integers(n=9)),
        Ask("PATCH", "/c/b?updateMask.fieldPaths=a,b", {}),
        Ask("PATCH", "/c/b?updateMask.fieldPaths=%60a,b%60", {"fields": {"a,b": {"nullValue": None}}}),
        Ask("PATCH", "/c/b", {"name": "<root>/c/b"}),
        Ask("PATCH", "/c", {}),
        Ask("PATCH", "/c/", {}),
        Ask("PATCH", "/c//d/e", {}),
        Ask("GET", "/c/b"),
    ],
    "a commit verifies what a transaction has read and not written": [
        SEED,
        commit(verify("c/a", exists=True), update("c/new", n=1)),
        commit(verify("c/a", updateTime="<time>"), update("c/new", n=2)),
        commit(verify("c/a", exists=False), update("c/refused")),
        commit(verify("c/none", exists=True), update("c/refused")),
        commit(verify("c/a", updateTime="2024-01-01T00:00:00Z"), update("c/refused")),
        commit({"verify": "<root>/c/a"}, update("c/refused")),
        commit({"verify": 7, "currentDocument": {"exists": True}}),
        commit({**verify("c/a", exists=True), **update("c/a", n=3)}),
        commit(verify("c/a", exists=True), update("c/a", n=4)),
        Ask("GET", "/c"),
    ],
    "a document is deleted, and under conditions": [
        SEED,
        Ask("DELETE", "/c/a?currentDocument.exists=true"),
        Ask("DELETE", "/c/a?currentDocument.exists=true"),
        Ask("DELETE", "/c/a"),
        Ask("DELETE", "/c/b?currentDocument.updateTime=2024-01-01T00:00:00Z"),
        Ask("DELETE", "/c"),
        Ask("GET", "/c"),
    ],
    "a collection is listed in pages, in orders, with masks and with missing documents": [
        SEED,
        Ask("GET", "/c"),
        Ask("GET", "/c?pageSize=2"),
        Ask("GET", "/c?pageSize=2&pageToken=<token>"),
        Ask("GET", "/c?orderBy=n%20desc&pageSize=2"),
        Ask("GET", "/c?page_size=1&order_by=n"),
        Ask("GET", "/c?mask.fieldPaths=none"),
        Ask("GET", "/c/a/s"),
        Ask("GET", "/c/a/"),
        Ask("GET", "/c/a/s/"),
        Ask("GET", "/none"),
        Ask("GET", "/gone?showMissing=true"),
        Ask("GET", "/gone"),
        Ask("GET", "/c?pageToken=xyz"),
        Ask("GET", "/c?pageSize=-1"),
        Ask("GET", "/c?showMissing=true&orderBy=n"),
        Ask("GET", "/c?mask.fieldPaths=a..b"),
        Ask("GET", "/c?mask.fieldPaths="),
    ],
    "the past is read at a time": [
        Ask("PATCH", "/c/a", integers(n=1)),
        Ask("PATCH", "/c/b", integers(n=1)),
        Ask("PATCH", "/c/a?mask.fieldPaths=none", integers(n=2)),
        Ask("POST", ":batchGet", {"documents": ["<root>/c/a"], "readTime": "<time>"}),
        run(of("c"), readTime="<time>"),
        run(of("c"), readTime="2999-01-01T00:00:00Z"),
    ],
    "a commit is atomic": [
        SEED,
        commit(),
        commit(update("c/a", n=9), {"delete": "<root>/c/none", "currentDocument": {"exists": True}}),
        Ask("GET", "/c/a"),
        commit({"delete": "<root>/c/a"}, {**update("c/b", m=5), "updateMask": {"fieldPaths": ["m"]}}),
        commit(
            {
                **update("c/t", n=1),
                "updateTransforms": [
                    {"fieldPath": "n", "increment": {"integerValue": 2}},
                    {"fieldPath": "list", "appendMissingElements": {"values": [{"stringValue": "x"}]}},
                ],
            }
        ),
        commit({"update": {"name": "nonsense"}}),
        commit({}),
        Ask("GET", "/c"),
    ],
    "a batch of writes is not atomic": [
        SEED,
        Ask(
            "POST",
            ":batchWrite",
            {"writes": [update("c/z", n=1), {**update("c/a"), "currentDocument": {"exists": True}}]},
        ),
        Ask("POST", ":batchWrite", {"writes": [update("c/z"), update("c/z")]}),
        Ask("GET", "/c"),
    ],
    "documents are got in a batch, also those that are missing": [
        SEED,
        Ask("POST", ":batchGet", {"documents": ["<root>/c/a"]}),
        Ask("POST", ":batchGet", {"documents": ["<root>/c/none"]}),
        Ask("POST", ":batchGet", {"documents": ["<root>/c/a"], "mask": {"fieldPaths": ["none"]}}),
        Ask("POST", ":batchGet", {"documents": []}),
        Ask("POST", ":batchGet", {"documents": ["x"]}),
    ],
    "queries are run below the root and below a document": [
        SEED,
        run(of("c", orderBy=[{"field": {"fieldPath": "n"}, "direction": "DESCENDING"}], limit=2)),
        run(of("c", where=filtered("n", "GREATER_THAN", integerValue=1))),
        run(of("c", where=filtered("n", 5, integerValue=1))),
        run(of("c", limit="1", offset=1)),
        run(of("c", select={"fields": [{"fieldPath": "__name__"}]})),
        run(of("s"), "/c/a"),
        run({"from": [{"collectionId": "s", "allDescendants": True}]}),
        run(
            {
                "from": [{"collection_id": "c"}],
                "start_at": {"values": [{"integerValue": 2}]},
                "order_by": [{"field": {"field_path": "n"}}],
            }
        ),
        run(of("none")),
        run(of("c", limit=-1)),
        run(of("c", where=filtered("n", "NOPE", integerValue=1))),
        run(of("c", where=filtered("n", 99, integerValue=1))),
        run(of("s"), "/c"),
    ],
    "aggregations are one answer in an array": [
        SEED,
        Ask(
            "POST",
            ":runAggregationQuery",
            {
                "structuredAggregationQuery": {
                    "structuredQuery": of("c"),
                    "aggregations": [
                        {"alias": "count", "count": {}},
                        {"alias": "upTo", "count": {"upTo": "2"}},
                        {"alias": "sum", "sum": {"field": {"fieldPath": "n"}}},
                        {"alias": "avg", "avg": {"field": {"fieldPath": "n"}}},
                    ],
                }
            },
        ),
    ],
    "collections are listed": [
        SEED,
        Ask("POST", ":listCollectionIds", {}),
        Ask("POST", "/c/a:listCollectionIds", {}),
        Ask("POST", "/c/none:listCollectionIds", {}),
        Ask("POST", "/c:listCollectionIds", {}),
    ],
    "a transaction reads, writes and ends": [
        SEED,
        Ask("POST", ":beginTransaction", {"options": {"readWrite": {}}}),
        Ask("POST", ":batchGet", {"documents": ["<root>/c/a"], "transaction": "<transaction>"}),
        commit(update("c/a", n=5), transaction="<transaction>"),
        commit(update("c/a", n=6), transaction="<transaction>"),
        Ask("POST", ":beginTransaction", {}),
        Ask("POST", ":rollback", {"transaction": "<transaction>"}),
        Ask("POST", ":rollback", {"transaction": "AAAA"}),
        Ask("POST", ":beginTransaction", {"options": {"readOnly": {}}}),
        run(of("c"), transaction="<transaction>"),
        Ask("POST", ":batchGet", {"documents": ["<root>/c/a"], "newTransaction": {"readOnly": {}}}),
        run(of("c", limit=1), newTransaction={"readOnly": {}}),
        Ask("GET", "/c/a"),
    ],
    "names may hold anything that is escaped": [
        Ask("POST", "/c?documentId=a%20b%2Bc", {}),
        Ask("GET", "/c/a%20b%2Bc"),
        Ask("GET", "/c/a+b%2Bc"),
        Ask("PATCH", "/c/%C3%A9%25", {}),
        Ask("GET", "/c/%c3%a9%25"),
        Ask("PATCH", "/c/a:b", {}),
        Ask("GET", "/c/a%3Ab"),
        Ask("POST", "/c:d?documentId=1", {}),
        Ask("POST", "/c%3Ad?documentId=2", {}),
        Ask("GET", "/c:d"),
        Ask("POST", "/c/a:b/s?documentId=1", {}),
        Ask("GET", "/c/a:b/s/1"),
        Ask("PATCH", "/c/x%2Fy%2Fz", {}),
        Ask("GET", "/c/x/y/z"),
        Ask("PATCH", "/c/x%2Fy", {}),
        Ask("PATCH", "/c/%2e%2e", {}),
        Ask("PATCH", "/c/__x__", {}),
        Ask("POST", "%3Acommit", {}),
        Ask("GET", "//v1/projects/<project>/databases/%28default%29/documents/c/a:b"),
    ],
    "a body that is not what it should be is refused": [
        *(Ask("POST", "/c?documentId=a", body) for body in ("{bad", "[]", '"x"', "null", '{"a":1}')),
        *(Ask("POST", "/c?documentId=a", {"fields": fields}) for fields in BAD_FIELDS),
        Ask("POST", ":commit", {"writes": 5}),
        Ask("POST", ":commit", {"transaction": "no base64!"}),
        Ask("GET", "/c/a"),
    ],
    "a path or method that is none is not found": [
        Ask("POST", ":nonsense", {}),
        Ask("GET", ":commit"),
        Ask("GET", ""),
        Ask("PUT", "/c/a", {}),
        Ask("POST", ":listen", {}),
        Ask("POST", ":write", {}),
        Ask("GET", "//v1/nonsense"),
        Ask("GET", "//nonsense"),
        Ask("POST", "//", {}),
        Ask("GET", "//emulator/v1"),
        Ask("GET", "//emulator/v1/projects/<project>/databases/(default)/documents"),
    ],
    "tools clear a database, a tree and a collection group": [
        SEED,
        Ask("DELETE", "//emulator/v1/<root>/c/a"),
        run({"from": [{"allDescendants": True}]}),
        SEED,
        Ask("DELETE", "//emulator/v1/<root>/c"),
        run({"from": [{"allDescendants": True}]}),
        SEED,
        Ask("DELETE", "//emulator/v1/<root>/none/x"),
        Ask("POST", BULK_DELETE, {"database": DATABASE, "collectionIds": ["s"]}),
        run({"from": [{"allDescendants": True}]}),
        Ask("POST", BULK_DELETE, {"database": DATABASE}),
        Ask("POST", BULK_DELETE, {}),
        Ask("DELETE", "//emulator/v1/<root>"),
        run({"from": [{"allDescendants": True}]}),
    ],
}
