"""A request's message made from path, query and body; answers and refusals as JSON.

The JSON is protobuf's own mapping, with nothing guessed: what cannot be understood is refused by name. Google's
emulator passes over a misspelt query parameter, and `currentDocument.exist=true` then guards nothing; production
refuses it, and so do we.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import grpc
from google.protobuf import json_format

from firestore_emulator.documents.protos import Proto
from firestore_emulator.rpc.errors import RpcError, invalid_argument
from firestore_emulator.wire.json_requests import message_of
from firestore_emulator.wire.rest_routes import Found

HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}
"""As google/rpc/code.proto has it; what is not here is 500."""

_EITHER_WAY = frozenset({"alt", "callback", "fields", "key", "prettyPrint"})
_ONE_WAY = frozenset({"$.xgafv", "$userProject", "access_token", "oauth_token", "quotaUser"})
SYSTEM_PARAMETERS = _EITHER_WAY | {f"${name}" for name in _EITHER_WAY} | _ONE_WAY | {"uploadType", "upload_protocol"}
"""Those that every Google API takes. They change nothing about a result, except for the form of the answer."""


_WRITTEN_AS_TEXT = frozenset({"google.protobuf.Timestamp", "google.protobuf.FieldMask"})
"""Messages that are strings in JSON, and so in a query."""


def query_of(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise invalid_argument("The query has escapes that are no UTF-8.") from None


def request_of(kind: Proto, found: Found, query: list[tuple[str, str]], body: bytes) -> Proto:
    """The message of type `kind` that a request stands for, or INVALID_ARGUMENT."""
    binding = found.binding
    content: dict[str, Any] = {}
    if binding.body == "*":
        content = object_of(body)
    elif binding.body:
        content[binding.body] = object_of(body)
    for field, text in found.variables.items():
        _bind(content, field, text)
    bound = {name for field in found.variables for name in (field, field.split(".")[0])} | {binding.body}
    for key, value in query:
        if key not in SYSTEM_PARAMETERS:
            _add_parameter(content, kind.DESCRIPTOR, key, value, bound)
    return message_of(content, kind)


def object_of(body: bytes) -> dict[str, Any]:
    """A body that is a message; an empty one is an empty message."""
    if not body:
        return {}
    content = json_of(body)
    if not isinstance(content, dict):
        raise invalid_argument("The body must be a JSON object.")
    return content


def json_of(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise invalid_argument(f"The body is not JSON: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'{name} is written as a string, "{name}"')


def _bind(content: dict[str, Any], field: str, text: str) -> None:
    """What the path says. A body may say the same once more, and nothing else."""
    *parents, last = field.split(".")
    for parent in parents:
        content = content[parent]
    last = _camel(last)
    if content.setdefault(last, text) != text:
        raise invalid_argument(f'The body has "{field}" different from the path.')


def _add_parameter(content: dict[str, Any], descriptor: Proto, key: str, value: str, bound: set[str]) -> None:
    names = key.split(".")
    field = None
    for position, name in enumerate(names):
        field = descriptor.fields_by_camelcase_name.get(name) or descriptor.fields_by_name.get(name)
        is_last = position == len(names) - 1
        if field is None or (position == 0 and (field.name in bound or "*" in bound)):
            raise _unknown(key)
        if is_last:
            break
        if field.message_type is None or field.is_repeated:
            raise _unknown(key)
        content = content.setdefault(field.json_name, {})
        descriptor = field.message_type
    assert field is not None, "a key has at least one part"
    if field.message_type is not None and field.message_type.full_name not in _WRITTEN_AS_TEXT:
        raise _unknown(key)
    parsed = _parsed(field, key, value)
    if field.is_repeated:
        content.setdefault(field.json_name, []).append(parsed)
    elif field.json_name in content:
        raise invalid_argument(f'The query parameter "{key}" is there more than once.')
    else:
        content[field.json_name] = parsed


def _parsed(field: Proto, key: str, value: str) -> str | bool:
    """Numbers, times and bytes are strings in JSON too; only a boolean is not."""
    if field.type != field.TYPE_BOOL:
        return value
    if value not in ("true", "false"):
        raise invalid_argument(f'The query parameter "{key}" must be true or false.')
    return value == "true"


def _unknown(key: str) -> RpcError:
    return invalid_argument(f'Unknown name "{key}": it cannot be given as a query parameter.')


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def written(value: Any, query: list[tuple[str, str]]) -> bytes:
    """JSON laid out for people, as Google's is, unless `prettyPrint=false`."""
    is_compact = any(key in ("prettyPrint", "$prettyPrint") and said in ("false", "0") for key, said in query)
    layout: dict[str, Any] = {"separators": (",", ":")} if is_compact else {"indent": 2}
    # Google's Python client takes a stream's array to its last bracket, and stumbles over whatever follows.
    end = "" if isinstance(value, list) else "\n"
    return (json.dumps(value, ensure_ascii=False, **layout) + end).encode()


def as_json(message: Proto) -> Any:
    return json_format.MessageToDict(message)


def refused(error: RpcError) -> tuple[int, Any]:
    """The HTTP status, and Google's envelope of an error."""
    status = HTTP_STATUS.get(error.code, 500)
    return status, {"error": {"code": status, "message": error.message, "status": error.code.name}}
