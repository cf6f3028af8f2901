"""Random match blocks inside each other, and requests for paths that they may or may not match."""

from __future__ import annotations

from random import Random
from typing import Any

_SEGMENTS = ("a", "b", "a", "b", "{x}", "{y}", "{p=**}")
_CONDITIONS = (
    *("true",) * 14,
    *("x == 'a'", "x != y", "y is string", "p is path", "p == p", "p != p", "p[0] == 'a'"),
    *("string(p) == '/'", "string(p) == '/a/b'", "p in [p]", "exists(/databases/$(database)/documents/$(p))"),
    *("/databases/$(database)/documents/$(p) == request.path", "p[0:1] == /a", "string(p).size() > 2", "x + y == 'ab'"),
)


def blocks(random: Random) -> str:
    """A file with one block, and up to two more inside it."""
    version = random.choice("12222")
    paths = [_path(random, random.randint(1, 3)) for _ in range(random.randint(1, 3))]
    start = "/databases/{database}" + random.choice(("/documents", "/documents", ""))
    if start == "/databases/{database}":
        paths[0] = random.choice(("/documents", "/{q=**}/documents", "/{q=**}")) + paths[0]
    if random.random() < 0.2:
        paths[0] = start + paths[0]
    else:
        paths.insert(0, start)
    source = ""
    for number, path in enumerate(reversed(paths)):
        allow = f"allow read: if {random.choice(_CONDITIONS)}; " if number == 0 or random.random() < 0.2 else ""
        source = f"match {path} {{ {allow}{source}}}"
    return f"rules_version = '{version}'; service cloud.firestore {{ {source} }}"


def _path(random: Random, length: int) -> str:
    return "".join(f"/{random.choice(_SEGMENTS)}" for _ in range(length))


def request(random: Random) -> tuple[str, str, Any]:
    """Method, path below `documents` and body of a get, a query or a query over a group of collections."""
    ids = [random.choice("ab") for _ in range(2 * random.randint(1, 3))]
    if random.random() < 0.5:
        return "GET", "/" + "/".join(ids), None
    selector: dict[str, Any] = {"collectionId": ids[-2]}
    if random.random() < 0.4:
        selector["allDescendants"] = True
    parent = "".join(f"/{one}" for one in ids[:-2])
    return "POST", f"{parent}:runQuery", {"structuredQuery": {"from": [selector]}}
