"""Random requests, made from the messages' own descriptors: every field of every call, mostly right, sometimes wrong.

Mostly right, because a request is refused at its first mistake: what lies behind it would never be reached.
"""

from __future__ import annotations

from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.conformance.wire import REQUESTS, Proto
from tests.emulator.firestore.support import DATABASE, ROOT

_DOCUMENTS = [f"{ROOT}/{path}" for path in ("c/1", "c/2", "c/1/d/1", "c/__id7__", "d/1")]
_BAD_NAMES = [
    "",
    ROOT,
    DATABASE,
    *(f"{ROOT}/{path}" for path in ("c", "c/", "c//1", "c/__x__", "c/.", "c/__id03__")),
    "projects/p/databases/other/documents/c/1",
    "projects//databases/(default)/documents/c/1",
    f"{ROOT}/" + "c/" * 201 + "1",
    f"{ROOT}/c/{'x' * 1600}",
]
_PATHS = (["a", "b", "t", "m.k", "`x y`"], ["__name__", "__x__", "a..b", "`", "", "a." * 40 + "a", "x" * 1600])
Pool = tuple[list[Any], list[Any]]
"""What is right, and what is not."""

_DOCUMENT_NAMES: Pool = (_DOCUMENTS, _BAD_NAMES)
BY_NAME: dict[str, Pool] = {
    "name": _DOCUMENT_NAMES,
    "document": _DOCUMENT_NAMES,
    "documents": _DOCUMENT_NAMES,
    "delete": _DOCUMENT_NAMES,
    "reference_value": _DOCUMENT_NAMES,
    "parent": ([ROOT, ROOT, _DOCUMENTS[0]], _BAD_NAMES),
    "database": ([DATABASE], [ROOT, "", "projects/p/databases/other", "x"]),
    "field_path": _PATHS,
    "field_paths": _PATHS,
    "collection_id": (["c", "d"], ["", "c/d", "__x__", ".", "x" * 1600]),
    "document_id": (["1", "2", ""], ["a/b", "__x__", "__id03__"]),
    "page_token": (["", "AmEAAQ=="], ["AAAA", "_w==", "!"]),
    "order_by": (["", "a", "a desc", "a,b desc"], ["a up", "__name__", "..."]),
    "alias": (["", "x"], ["__x__"]),
}
_STRINGS: Pool = (["", "a", "b"], ["__vector__", "x" * 1600])
_KEYS: Pool = (["a", "b", "t", "m", "x y"], ["", "__x__", "__type__", "value"])
_TRANSACTIONS: Pool = ([b"transaction-1", b"transaction-2"], [b"", b"transaction-9", b"\xff", b"nonsense"])
_INTEGERS: Pool = ([0, 1, 2, 1000], [-1, 2**31 - 1, -(2**31), 7])
_LONG: Pool = ([0, 1, 2, 2**53 + 1], [-1, 2**63 - 1, -(2**63), 253_402_300_800, 2**32])
_DOUBLES: Pool = ([0.0, -0.0, 1.5], [float("nan"), float("inf"), float("-inf"), 1e308, 91.0])


def _pick(rng: Random, pool: Pool) -> Any:
    right, wrong = pool
    return rng.choice(wrong if rng.randint(0, 19) == 0 else right)


_SIGNED_32 = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32)


def _scalar(rng: Random, field: FieldDescriptor) -> Any:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            if rng.randint(0, 39) == 0:
                return "".join(chr(rng.randrange(0xD800)) for _ in range(rng.randrange(5)))
            return _pick(rng, BY_NAME.get(field.name, _STRINGS))
        case FieldDescriptor.TYPE_BYTES:
            if field.name in ("transaction", "retry_transaction"):
                return _pick(rng, _TRANSACTIONS)
            return rng.randbytes(rng.randrange(5))
        case FieldDescriptor.TYPE_ENUM:
            assert field.enum_type is not None
            known = [number.number for number in field.enum_type.values]
            return _pick(rng, ([number for number in known if number] or known, [0, 99]))
        case FieldDescriptor.TYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return _pick(rng, _DOUBLES)
        case FieldDescriptor.TYPE_INT64:
            return _pick(rng, _LONG)
        case kind if kind in _SIGNED_32:
            return _pick(rng, _INTEGERS)
    return rng.choice([0, 1, 2**31 - 1])


_ALWAYS = frozenset({"database", "parent", "name", "op", "field", "field_path", "value", "collection_id", "from_"})
"""Without these nearly every request is refused; they are left out now and then."""
_SELDOM = frozenset({"consistency_selector", "explain_options", "find_nearest", "labels", "transaction", "resume_type"})


def _fill(rng: Random, message: Proto, descriptor: Descriptor, depth: int) -> None:
    chosen = {}
    for oneof in descriptor.oneofs:
        if oneof.fields and (oneof.name not in _SELDOM or rng.randint(0, 4) == 0):
            chosen[oneof.name] = rng.choice([*oneof.fields, *oneof.fields, None])
    for field in descriptor.fields:
        group = field.containing_oneof
        if group is not None and len(group.fields) > 1:
            wanted = chosen.get(group.name) is field
        elif field.name in _ALWAYS:
            wanted = rng.randint(0, 39) > 0
        else:
            wanted = rng.randint(0, 4 if field.name in _SELDOM else 2) == 0
        if not wanted:
            continue
        if field.message_type is None:
            _set_scalar(rng, message, field)
        elif depth > 0:
            _set_message(rng, message, field, depth)


def _set_scalar(rng: Random, message: Proto, field: FieldDescriptor) -> None:
    if field.is_repeated:
        getattr(message, field.name).extend(_scalar(rng, field) for _ in range(rng.randint(0, 2)))
    else:
        setattr(message, field.name, _scalar(rng, field))


def _set_message(rng: Random, message: Proto, field: FieldDescriptor, depth: int) -> None:
    assert field.message_type is not None
    inner = field.message_type
    if inner.GetOptions().map_entry:
        for _ in range(rng.randint(0, 2)):
            key = _pick(rng, _KEYS)
            value_type = inner.fields_by_name["value"]
            if value_type.message_type is None:
                getattr(message, field.name)[key] = _scalar(rng, value_type)
            else:
                _fill(rng, getattr(message, field.name)[key], value_type.message_type, depth - 1)
    elif field.is_repeated:
        for _ in range(rng.randint(0, 2)):
            _fill(rng, getattr(message, field.name).add(), inner, depth - 1)
    else:
        getattr(message, field.name).SetInParent()
        _fill(rng, getattr(message, field.name), inner, depth - 1)


def request(rng: Random) -> tuple[str, Proto]:
    method = rng.choice([*REQUESTS, "RunQuery", "Commit", "Listen"])
    message = REQUESTS[method]()
    _fill(rng, message, message.DESCRIPTOR, depth=6)
    if method == "PartitionQuery" and rng.random() < 0.5:
        # So little may be asked here that chance alone would never ask it.
        message.structured_query.Clear()
        message.structured_query.from_.add(collection_id="c", all_descendants=True)
        message.structured_query.order_by.add().field.field_path = "__name__"
    return method, message


def broken_bytes(rng: Random) -> tuple[str, bytes]:
    """A request's bytes with some of them changed, cut off or put in."""
    method, message = request(rng)
    data = bytearray(message.SerializeToString())
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, max(0, len(data) - 1))
        match rng.choice(["change", "cut", "insert"]):
            case "change" if data:
                data[place] = rng.randrange(256)
            case "cut":
                del data[place:]
            case _:
                data[place:place] = rng.randbytes(rng.randint(1, 4))
    return method, bytes(data)
