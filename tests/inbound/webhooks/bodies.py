"""Genuine bodies of every provider, and all the ways in which a body can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from tests.inbound.webhooks.support import ACCOUNT, inbound, receipt

MEDIA = {"type": "media", "mediaId": "m-1", "mimeType": "image/jpeg", "caption": "look"}
EVENTS: tuple[dict[str, Any], ...] = (
    *(receipt("request-1", status) for status in ("sent", "delivered", "read", "failed")),
    receipt("request-2", "read", echo=True),
    {**receipt("request-1", "failed"), "error": {"code": "recipient_invalid", "message": "no such number"}},
    inbound(),
    {**inbound("in-2"), "parts": [MEDIA]},
    {"type": "session", "status": "up", "at": "2026-03-01T12:00:00+00:00"},
    {"type": "session", "status": "down", "at": "2026-03-01T12:00:00+00:00"},
)


@cache
def genuine(name: str) -> list[bytes]:
    """One of each kind, as this provider posts them."""
    form = FORMS.get(name, OWN)
    return [form.body(ACCOUNT, {"to": "4915112345", **event}) for event in EVENTS]


# --- bytes that are wrong

Mutation = Callable[[bytes], bytes]

_places = st.floats(0, 1, exclude_max=True)
_odd_bytes = st.sampled_from(
    [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"\xef\xbb\xbf", b"e9"]
)


def _at(body: bytes, place: float) -> int:
    return int(len(body) * place)


@st.composite
def bytes_changed(draw: st.DrawFn, body: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        at = _at(body, draw(_places))
        match draw(st.sampled_from(["cut", "drop", "put", "flip", "double"])):
            case "cut":
                body = body[:at]
            case "drop":
                body = body[:at] + body[at + draw(st.integers(1, 20)) :]
            case "put":
                body = body[:at] + draw(st.one_of(_odd_bytes, st.binary(max_size=20))) + body[at:]
            case "flip":
                body = (
                    body[:at] + bytes(byte ^ draw(st.integers(1, 255)) for byte in body[at : at + 1]) + body[at + 1 :]
                )
            case "double":
                body = body[:at] + body[:at] + body[at:]
    return body


# --- JSON that is wrong

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    "",
    " ",
    "/",
    "..",
    "__x__",
    "a/b/c",
    "\ud800",
    "\udc00\ud800",
    "x\ud83d",
    "\u0000",
    "🦀" * 600,
    "x" * 5_000,
    "x" * 120_000,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "2026-02-30T12:00:00",
    "99999999999999999999",
    "-62135596801",
    "NaN",
    [],
    {},
    [[]],
    {"": ""},
    {"$ref": "#"},
    ["x"] * 1_500,
)
_odd = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=30),
    st.integers(),
    st.floats(),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4), max_leaves=8
    ),
)


@st.composite
def json_changed(draw: st.DrawFn, body: bytes) -> bytes:
    tree = json.loads(body)
    for _ in range(draw(st.integers(1, 3))):
        tree = _changed(draw, tree)
    return json.dumps(tree).encode(errors="surrogatepass")


def _changed(draw: st.DrawFn, node: Any) -> Any:
    """One place below it is replaced, dropped, doubled, renamed, or wrapped many times over."""
    go_on = draw(st.integers(0, 5))
    if go_on and isinstance(node, dict) and node:
        key = draw(st.sampled_from(sorted(node)))
        match draw(st.sampled_from(["below", "below", "below", "drop", "rename"])):
            case "below":
                return {**node, key: _changed(draw, node[key])}
            case "drop":
                return {name: value for name, value in node.items() if name != key}
            case _:
                rest = {name: value for name, value in node.items() if name != key}
                return {**rest, draw(st.text(max_size=8)): node[key]}
    if go_on and isinstance(node, list) and node:
        at = draw(st.integers(0, len(node) - 1))
        match draw(st.sampled_from(["below", "below", "double", "many"])):
            case "below":
                return [*node[:at], _changed(draw, node[at]), *node[at + 1 :]]
            case "double":
                return [*node, node[at]]
            case _:
                return node[:1] * draw(st.sampled_from([3, 30, 300]))
    if draw(st.integers(0, 9)) == 0:
        for _ in range(draw(st.sampled_from([3, 31, 200]))):
            node = [node]
        return node
    return draw(_odd)


# --- JSON of the right form with wrong values

_TIMES = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
_SECONDS = (-62135596801, -1, 0, 253402300799, 253402300800, 2**63 - 1, 2**63, 10**30)
_TEXTS = ("", " ", "/", "..", "\ud800x", "\u0000", "x" * 600, "🦀" * 600, "x" * 5_000, "a__b", "@c.us", "true_1@c.us_")


@st.composite
def values_changed(draw: st.DrawFn, body: bytes) -> bytes:
    """Each value may be another of its kind; a time stays a time, though one that few calendars know."""
    return json.dumps(_replaced(draw, json.loads(body))).encode(errors="surrogatepass")


def _replaced(draw: st.DrawFn, node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _replaced(draw, value) for name, value in node.items()}
    if isinstance(node, list):
        return [_replaced(draw, value) for value in node]
    if draw(st.integers(0, 3)) or node is None or isinstance(node, bool):
        return node
    if isinstance(node, int | float):
        return draw(st.sampled_from(_SECONDS) | st.sampled_from(_SECONDS).map(lambda seconds: seconds * 1000))
    if node.isdigit():
        return str(draw(st.sampled_from(_SECONDS)))
    return draw(st.sampled_from(_TIMES if node[:2] == "20" else _TEXTS))


# --- one poison in each place

DEEP = 30
"""Levels of lists around a value: few enough for the whole body to pass the check of its depth where it is shallow."""
POISONS: dict[str, bytes] = {
    "half of a pair, first": rb'"\ud83d"',
    "half of a pair, second": rb'"a\udc00b"',
    "half of a pair, in bytes": b'"\xed\xa0\xbd"',
    "two halves in the wrong order": rb'"\ude00\ud83d"',
    "NUL": rb'"\u0000"',
    "NUL inside": rb'"4915\u000012345"',
    "a number of 5,000 digits": b"9" * 5_000,
    "a number of 400 digits": b"9" * 400,
    "a number of 400 digits, as text": b'"' + b"9" * 400 + b'"',
    "deep": b"[" * DEEP + b"]" * DEEP,
    "far too deep": b"[" * 50_000 + b"]" * 50_000,
}
_MARK = "@@poison@@"


def poisoned(body: bytes, poison: bytes) -> Iterator[bytes]:
    """The body with the poison in the place of each of its values, one after the other, and at last as a name."""
    tree = json.loads(body)
    for path in _places_in(tree):
        yield json.dumps(_put(tree, path, _MARK)).encode().replace(f'"{_MARK}"'.encode(), poison)
    if isinstance(tree, dict) and poison.startswith(b'"'):
        yield body.rstrip()[:-1] + b"," + poison + b":1}"


def _places_in(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _places_in(value, (*path, key))
    else:
        yield path


def _put(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy(node)
    changed[path[0]] = _put(node[path[0]], path[1:], value)
    return changed


@cache
def mutated(name: str) -> st.SearchStrategy[bytes]:
    seeds = st.sampled_from(genuine(name))
    return seeds.flatmap(lambda body: st.one_of(bytes_changed(body), json_changed(body), values_changed(body)))
