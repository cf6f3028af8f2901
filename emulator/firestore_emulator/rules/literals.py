"""Literals: the escapes of strings and bytes, and integers of 64 bits."""

from __future__ import annotations

import re

from firestore_emulator.rules import ast
from firestore_emulator.rules.ast import Span, SyntaxFault
from firestore_emulator.rules.values import paired

_LARGEST = 2**63
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPES = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-3][0-7][0-7]|.)")


# --- integers


class Unsigned(ast.Literal):
    """An integer that is in range only with a minus before it."""

    value: int


def integer(span: Span, digits: str) -> ast.Literal:
    value = int(digits) if len(digits) < 20 else _LARGEST + 1
    return ast.Literal(span=span, value=value) if value < _LARGEST else Unsigned(span=span, value=value)


def negative(span: Span, number: Unsigned) -> ast.Literal:
    if number.value > _LARGEST:
        raise _out_of_range(span, number.value)
    return ast.Literal(span=span, value=-number.value)


def check_integer(node: ast.Expression) -> None:
    """Raise SyntaxFault if the node is an integer above 64 bits that no minus has brought into range."""
    if isinstance(node, Unsigned):
        raise _out_of_range(node.span, node.value)


def _out_of_range(span: Span, value: int) -> SyntaxFault:
    return SyntaxFault(span.line, span.column, f"Invalid number literal: {value} is outside 64 bits.")


# --- strings and bytes


def string(token: str) -> str:
    """The value of a quoted string."""
    text = token[1:-1]
    return text if "\\" not in text else paired(_ESCAPES.sub(_character, text))


def octets(span: Span, token: str) -> bytes:
    """The value of a bytes literal, which is `b` and a quoted string."""
    if re.search(r"\\u", token.replace("\\\\", "")):
        raise SyntaxFault(span.line, span.column, f"Invalid bytes literal {token}.")
    text = token[2:-1]
    parts = bytearray()
    position = 0
    for match in _ESCAPES.finditer(text):
        parts += text[position : match.start()].encode()
        parts += _character(match).encode("latin-1")
        position = match.end()
    return bytes(parts + text[position:].encode())


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xu" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape[0].isdigit():
        return chr(int(escape, 8))
    return _SIMPLE.get(escape, escape)
