"""Which HTTP request is which call: the `google.api.http` annotations of Firestore's protocol definition, as a table.

A path is matched as it was sent, before its escapes are decoded, so that an id may hold whatever it likes:
`a%3ArunQuery` is a document, `:runQuery` is a call. The annotations leave one choice open: `GET .../documents/a/b` fits
both "the document a/b" and "the collection b below a". Documents stand at even depths and collections at odd ones,
which settles it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from firestore_emulator.rpc.errors import invalid_argument


@dataclass(frozen=True, slots=True)
class Binding:
    call: str
    """The method of the service."""
    verb: str
    template: str
    body: str = ""
    """The field that the body is; `*` is the whole request, and nothing means that no body is read."""


_DATABASE = "/v1/{database=projects/*/databases/*}/documents"
_ROOT = "/v1/{parent=projects/*/databases/*/documents}"
_BELOW = "/v1/{parent=projects/*/databases/*/documents/*/**}"
_DOCUMENT = "projects/*/databases/*/documents/*/**"

BINDINGS = (
    Binding("BatchGetDocuments", "POST", _DATABASE + ":batchGet", "*"),
    Binding("BatchWrite", "POST", _DATABASE + ":batchWrite", "*"),
    Binding("BeginTransaction", "POST", _DATABASE + ":beginTransaction", "*"),
    Binding("Commit", "POST", _DATABASE + ":commit", "*"),
    Binding("ExecutePipeline", "POST", _DATABASE + ":executePipeline", "*"),
    Binding("Rollback", "POST", _DATABASE + ":rollback", "*"),
    Binding("ListCollectionIds", "POST", _ROOT + ":listCollectionIds", "*"),
    Binding("ListCollectionIds", "POST", _BELOW + ":listCollectionIds", "*"),
    Binding("PartitionQuery", "POST", _ROOT + ":partitionQuery", "*"),
    Binding("PartitionQuery", "POST", _BELOW + ":partitionQuery", "*"),
    Binding("RunAggregationQuery", "POST", _ROOT + ":runAggregationQuery", "*"),
    Binding("RunAggregationQuery", "POST", _BELOW + ":runAggregationQuery", "*"),
    Binding("RunQuery", "POST", _ROOT + ":runQuery", "*"),
    Binding("RunQuery", "POST", _BELOW + ":runQuery", "*"),
    Binding("CreateDocument", "POST", "/v1/{parent=projects/*/databases/*/documents/**}/{collection_id}", "document"),
    Binding("ListDocuments", "GET", _BELOW + "/{collection_id}"),
    Binding("ListDocuments", "GET", _ROOT + "/{collection_id}"),
    Binding("GetDocument", "GET", "/v1/{name=" + _DOCUMENT + "}"),
    Binding("UpdateDocument", "PATCH", "/v1/{document.name=" + _DOCUMENT + "}", "document"),
    Binding("DeleteDocument", "DELETE", "/v1/{name=" + _DOCUMENT + "}"),
)
"""The first that fits is meant: calls with a verb of their own before all others, a listing before a document."""

_PART = re.compile(r"\{(?P<variable>[a-z_.]+)(?:=(?P<shape>[^}]*))?\}|(?P<literal>[^{]+)")


@dataclass(frozen=True, slots=True)
class Found:
    binding: Binding
    variables: dict[str, str]
    """What the path says, by the path of the field that it belongs to, such as `document.name`."""


class Routes:
    """The bindings of one service, ready to be matched."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._compiled = tuple(map(_compile, bindings))

    def find(self, verb: str, path: str) -> Found | None:
        """The call that a request is. `path` has its escapes still in it."""
        for binding, expression, names in self._compiled:
            if binding.verb == verb and (match := expression.fullmatch(path)):
                return Found(binding, {name: _decoded(text) for name, text in zip(names, match.groups(), strict=True)})
        return None


def _compile(binding: Binding) -> tuple[Binding, re.Pattern[str], list[str]]:
    expression, names = "", []
    for part in _PART.finditer(binding.template):
        if part["literal"] is not None:
            # Some clients escape each segment of a path, and a colon behind `documents` can mean nothing else.
            expression += re.escape(part["literal"]).replace("/documents:", "/documents(?::|%3[Aa])")
        else:
            names.append(part["variable"])
            is_listed_below = binding.call == "ListDocuments"
            expression += f"({_shape(part['shape'] or '*', is_listed_below)})"
    return binding, re.compile(expression, re.DOTALL), names


def _shape(shape: str, is_listed_below: bool) -> str:
    """`*` is a segment and `**` any number of them. Collections are listed below a document: segments in pairs."""
    if is_listed_below and shape.endswith("/*/**"):
        return _shape(shape.removesuffix("/*/**"), False) + "(?:/[^/]*/[^/]*)+"
    first, *rest = shape.split("/")
    expression = "[^/]*" if first == "*" else re.escape(first)
    for segment in rest:
        expression += {"*": "/[^/]*", "**": "(?:/.*)?"}.get(segment) or "/" + re.escape(segment)
    return expression


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise invalid_argument(f'The path has escapes that are no UTF-8: "{text}".') from None


FIRESTORE = Routes(BINDINGS)
