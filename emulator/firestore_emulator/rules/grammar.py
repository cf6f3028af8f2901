"""The text of a rules file to its tree. A syntax error names its line and column, and what could stand there.

A slash that a path segment follows at once begins a path, also where a division was meant: `a / b` divides and `a/b`
does not parse, as in Google's compiler.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken
from lark.exceptions import VisitError
from lark.tree import Meta

from firestore_emulator.rules import ast
from firestore_emulator.rules.ast import Span

_SEGMENT = r"(?:\([A-Za-z0-9_\-.~:@+*&']+\)|(?:[A-Za-z0-9_\-.~:@+*&']|%[0-9A-Fa-f]{2})+)"
_ESCAPE = r"\\(?:[\\'\"ntrbf]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-3][0-7][0-7])"
_QUOTED = rf"(?:'(?:[^'\\\r\n]|{_ESCAPE})*'|\"(?:[^\"\\\r\n]|{_ESCAPE})*\")"
_RESERVED = "function|match|allow|let|return|if|service|rules_version|import|is|in|true|false|null"

_GRAMMAR = rf"""
start: version? (function | service)*
version: "rules_version" "=" STRING ";"?
service: "service" NAME "." FIELD "{{" (function | match)* "}}"
match: "match" path "{{" (function | allow | match)* "}}"
allow: "allow" NAME ("," NAME)* (":" "if" expression)? ";"?
function: "function" NAME "(" (NAME ("," NAME)*)? ")" "{{" let* "return" expression ";"? "}}"
let: "let" NAME "=" expression ";"

?expression: either | either "?" expression ":" expression -> conditional
?either: both | either "||" both -> binary_or
?both: contained | both "&&" contained -> binary_and
?contained: typed | contained "in" typed -> binary_in
?typed: equal | typed "is" NAME -> type_test
?equal: compared | equal EQUALITY compared -> binary
?compared: sum | compared COMPARISON sum -> binary
?sum: product | sum (PLUS | MINUS) product -> binary
?product: unary | product (TIMES | DIVIDE | MODULO) unary -> binary
?unary: postfix | "!" unary -> negation | MINUS unary -> minus
?postfix: primary
    | postfix "." FIELD -> member
    | postfix "." FIELD "(" arguments ")" -> method
    | postfix "[" expression "]" -> index
    | postfix "[" low ":" high "]" -> range
low: expression?
high: expression?
arguments: (expression ("," expression)*)?
?primary: "true" -> true | "false" -> false | "null" -> null
    | INT -> integer | FLOAT -> fraction | STRING -> string | BYTES -> octets
    | NAME -> name
    | NAME "(" arguments ")" -> call
    | "[" (expression ("," expression)* ","?)? "]" -> list_literal
    | "{{" (entry ("," entry)* ","?)? "}}" -> map_literal
    | "(" expression ")" -> paren
    | path
entry: expression ":" expression
path: segment+
segment: SEGMENT -> fixed
    | OPEN_VARIABLE NAME "}}" -> variable
    | OPEN_VARIABLE NAME "=" GLOB "}}" -> glob
    | OPEN_EXPRESSION expression ")" -> evaluated

COMMENT.9: /\/\/[^\r\n]*/ | /\/\*[\s\S]*?\*\//
SEGMENT.5: /\/{_SEGMENT}/
OPEN_VARIABLE.5: /\/\{{/
OPEN_EXPRESSION.5: /\/\$\s*\(/
GLOB: "**"
EQUALITY: "==" | "!="
COMPARISON: /<=|>=|<|>/
PLUS: /\+(?!\+)/
MINUS: /-(?!-)/
TIMES: "*"
DIVIDE: /\/(?!{_SEGMENT}|\{{|\$\s*\()/
MODULO: "%"
FLOAT.2: /[0-9]+\.[0-9]*|\.[0-9]+/
INT: /(?:0|[1-9][0-9]*)(?![0-9A-Za-z_$])/
STRING: /{_QUOTED}/
BYTES.3: /b{_QUOTED}/
NAME: /(?!(?:{_RESERVED})(?![A-Za-z0-9_$]))[A-Za-z_$][A-Za-z0-9_$]*/
FIELD: /[A-Za-z_$][A-Za-z0-9_$]*/
%ignore COMMENT
%ignore /\s+/
"""

_SHOWN = {
    "SEGMENT": "a path",
    "OPEN_VARIABLE": "a path",
    "OPEN_EXPRESSION": "a path",
    "NAME": "a name",
    "FIELD": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "BYTES": "bytes",
    "EQUALITY": "'=='",
    "COMPARISON": "'<'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "TIMES": "'*'",
    "DIVIDE": "'/'",
    "MODULO": "'%'",
    "GLOB": "'**'",
    "$END": "the end of the file",
}
_LARGEST = 2**63


class SyntaxFault(Exception):
    """The source does not parse."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message


def parse(source: str) -> ast.File:
    """The tree of `source`, or SyntaxFault."""
    if not source.strip():
        raise SyntaxFault(0, 0, "Rules content empty. Compilation aborted.")
    try:
        tree = _parser().parse(source)
        file: ast.File = _Builder(source).transform(tree)
    except UnexpectedToken as error:
        found = "the end of the file" if error.token.type == "$END" else f"'{error.token}'"
        expected = _expected(error.accepts or error.expected)
        hint = "" if error.token.type == "$END" else _hint(source, error.token.start_pos or 0)
        raise SyntaxFault(*_position(source, error.token), f"Unexpected {found}. Expected {expected}.{hint}") from None
    except UnexpectedCharacters as error:
        expected = _expected(error.allowed or ())
        at = error.pos_in_stream or 0
        message = f"Unexpected '{source[at]}'. Expected {expected}.{_hint(source, at)}"
        raise SyntaxFault(error.line, error.column, message) from None
    except UnexpectedEOF:
        raise SyntaxFault(source.count("\n") + 1, 1, "Unexpected end of the file.") from None
    except VisitError as error:
        if isinstance(error.orig_exc, SyntaxFault):
            raise error.orig_exc from None
        raise
    except RecursionError:
        raise SyntaxFault(1, 1, "Expression is too complex to evaluate safely.") from None
    return file


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def _position(source: str, token: Token) -> tuple[int, int]:
    if token.type == "$END" or token.line is None or token.column is None:
        lines = source.split("\n")
        return len(lines), len(lines[-1]) + 1
    return token.line, token.column


def _expected(names: Any) -> str:
    shown = sorted({_SHOWN.get(name, "") or _literal(name) for name in names})
    return shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}" if shown else "nothing here"


def _literal(name: str) -> str:
    for terminal in _parser().terminals:
        if terminal.name == name:
            return f"'{terminal.pattern.value}'"
    return name


def _hint(source: str, at: int) -> str:
    if source[at] == "/":
        return " A slash that a name or number follows begins a path: put a space behind it to divide."
    if source[at] in "'\"":
        return " Is a closing quote missing, or is there an unknown escape?"
    if source[at : at + 2] in ("--", "++"):
        return " Increment (++) and decrement (--) operators are not supported."
    return ""


class _Builder(Transformer[Token, Any]):
    """lark's tree to ours."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def _call_userfunc(self, tree: Any, new_children: list[Any] | None = None) -> Any:
        children = tree.children if new_children is None else new_children
        return getattr(self, tree.data)(_span(tree.meta), children)

    # --- declarations

    def start(self, span: Span, parts: list[Any]) -> ast.File:
        version = parts.pop(0) if parts and isinstance(parts[0], str) else "1"
        return ast.File(
            span=span,
            version=version,
            functions=_only(parts, ast.Function),
            services=_only(parts, ast.Service),
        )

    def version(self, span: Span, parts: list[Any]) -> str:
        version = _unquoted(parts[0])
        if version not in ("1", "2"):
            raise SyntaxFault(span.line, span.column, f"Unsupported rules version {version}.")
        return version

    def service(self, span: Span, parts: list[Any]) -> ast.Service:
        return ast.Service(
            span=span,
            name=f"{parts[0]}.{parts[1]}",
            functions=_only(parts, ast.Function),
            matches=_only(parts, ast.Match),
        )

    def match(self, span: Span, parts: list[Any]) -> ast.Match:
        path = parts[0]
        for segment in path.segments:
            if isinstance(segment, ast.Node):
                raise SyntaxFault(segment.span.line, segment.span.column, "A match path cannot hold an expression.")
        return ast.Match(
            span=span,
            segments=path.segments,
            functions=_only(parts, ast.Function),
            allows=_only(parts, ast.Allow),
            matches=_only(parts, ast.Match),
        )

    def allow(self, span: Span, parts: list[Any]) -> ast.Allow:
        methods = tuple(_named(part) for part in parts if isinstance(part, Token))
        condition = None if isinstance(parts[-1], Token) else parts[-1]
        return ast.Allow(span=span, methods=methods, condition=condition)

    def function(self, span: Span, parts: list[Any]) -> ast.Function:
        names = [_named(part) for part in parts if isinstance(part, Token)]
        return ast.Function(
            span=names[0].span,
            name=names[0].name,
            parameters=tuple(names[1:]),
            lets=_only(parts, ast.Let),
            result=parts[-1],
        )

    def let(self, span: Span, parts: list[Any]) -> ast.Let:
        return ast.Let(span=_token_span(parts[0]), name=str(parts[0]), value=parts[1])

    # --- operators

    def conditional(self, span: Span, parts: list[Any]) -> ast.Conditional:
        return ast.Conditional(span=span, condition=parts[0], when_true=parts[1], when_false=parts[2])

    def binary(self, span: Span, parts: list[Any]) -> ast.Binary:
        return ast.Binary(span=span, operator=str(parts[1]), left=parts[0], right=parts[2])

    def binary_or(self, span: Span, parts: list[Any]) -> ast.Binary:
        return ast.Binary(span=span, operator="||", left=parts[0], right=parts[1])

    def binary_and(self, span: Span, parts: list[Any]) -> ast.Binary:
        return ast.Binary(span=span, operator="&&", left=parts[0], right=parts[1])

    def binary_in(self, span: Span, parts: list[Any]) -> ast.Binary:
        return ast.Binary(span=span, operator="in", left=parts[0], right=parts[1])

    def type_test(self, span: Span, parts: list[Any]) -> ast.TypeTest:
        return ast.TypeTest(span=span, operand=parts[0], type_name=str(parts[1]))

    def negation(self, span: Span, parts: list[Any]) -> ast.Unary:
        return ast.Unary(span=span, operator="!", operand=parts[0])

    def minus(self, span: Span, parts: list[Any]) -> ast.Expression:
        operand = parts[1]
        if isinstance(operand, _Unsigned):
            if operand.value > _LARGEST:
                raise _bad_number(span, operand.value)
            return ast.Literal(span=span, value=-operand.value)
        return ast.Unary(span=span, operator="-", operand=operand)

    # --- operands

    def member(self, span: Span, parts: list[Any]) -> ast.Member:
        return ast.Member(span=span, target=parts[0], name=str(parts[1]))

    def method(self, span: Span, parts: list[Any]) -> ast.MethodCall:
        return ast.MethodCall(span=span, target=parts[0], name=str(parts[1]), arguments=parts[2])

    def index(self, span: Span, parts: list[Any]) -> ast.Index:
        return ast.Index(span=span, target=parts[0], index=parts[1])

    def range(self, span: Span, parts: list[Any]) -> ast.Slice:
        return ast.Slice(span=span, target=parts[0], low=parts[1], high=parts[2])

    def low(self, span: Span, parts: list[Any]) -> Any:
        return parts[0] if parts else None

    high = low

    def arguments(self, span: Span, parts: list[Any]) -> tuple[ast.Expression, ...]:
        return tuple(parts)

    def call(self, span: Span, parts: list[Any]) -> ast.Call:
        return ast.Call(span=span, name=str(parts[0]), arguments=parts[1])

    def name(self, span: Span, parts: list[Any]) -> ast.Name:
        return _named(parts[0])

    def paren(self, span: Span, parts: list[Any]) -> ast.Paren:
        return ast.Paren(span=span, inner=parts[0])

    def list_literal(self, span: Span, parts: list[Any]) -> ast.ListLiteral:
        return ast.ListLiteral(span=span, items=tuple(parts))

    def map_literal(self, span: Span, parts: list[Any]) -> ast.MapLiteral:
        return ast.MapLiteral(span=span, entries=tuple(parts))

    def entry(self, span: Span, parts: list[Any]) -> tuple[ast.Expression, ast.Expression]:
        return parts[0], parts[1]

    def path(self, span: Span, parts: list[Any]) -> ast.PathLiteral:
        return ast.PathLiteral(span=span, segments=tuple(parts))

    def fixed(self, span: Span, parts: list[Any]) -> str:
        return str(parts[0])[1:]

    def variable(self, span: Span, parts: list[Any]) -> ast.Variable:
        return ast.Variable(name=str(parts[1]), is_glob=False)

    def glob(self, span: Span, parts: list[Any]) -> ast.Variable:
        return ast.Variable(name=str(parts[1]), is_glob=True)

    def evaluated(self, span: Span, parts: list[Any]) -> ast.Expression:
        expression: ast.Expression = parts[1]
        return expression

    # --- literals

    def true(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=True)

    def false(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=False)

    def null(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=None)

    def integer(self, span: Span, parts: list[Any]) -> ast.Literal:
        value = int(parts[0]) if len(parts[0]) < 20 else _LARGEST + 1
        if value < _LARGEST:
            return ast.Literal(span=span, value=value)
        return _Unsigned(span=span, value=value)

    def fraction(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=float(parts[0]))

    def string(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=_unquoted(parts[0]))

    def octets(self, span: Span, parts: list[Any]) -> ast.Literal:
        text = str(parts[0])
        if re.search(r"\\u", text.replace("\\\\", "")):
            raise SyntaxFault(span.line, span.column, f"Invalid bytes literal {text}.")
        return ast.Literal(span=span, value=_unescaped_bytes(text[2:-1]))


class _Unsigned(ast.Literal):
    """A number that only a minus before it brings into range."""

    value: int


def check_numbers(node: object) -> None:
    """Refuse numbers that no minus has brought into range."""
    if isinstance(node, _Unsigned):
        raise _bad_number(node.span, node.value)


def _bad_number(span: Span, value: int) -> SyntaxFault:
    return SyntaxFault(span.line, span.column, f"Invalid number literal: {value} is outside 64 bits.")


_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPES = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-3][0-7][0-7]|.)")


def _unquoted(token: str) -> str:
    text = token[1:-1]
    return text if "\\" not in text else _joined(_ESCAPES.sub(_character, text))


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xu" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape[0].isdigit():
        return chr(int(escape, 8))
    return _SIMPLE.get(escape, escape)


def _joined(text: str) -> str:
    """Two escapes that are one character in UTF-16 become that character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped_bytes(text: str) -> bytes:
    parts = bytearray()
    position = 0
    for match in _ESCAPES.finditer(text):
        parts += text[position : match.start()].encode()
        parts += _character(match).encode("latin-1")
        position = match.end()
    return bytes(parts + text[position:].encode())


def _named(token: Token) -> ast.Name:
    return ast.Name(span=_token_span(token), name=str(token))


def _token_span(token: Token) -> Span:
    return Span(token.line or 0, token.column or 0, token.start_pos or 0, token.end_pos or 0)


def _span(meta: Meta) -> Span:
    if meta.empty:
        return Span(0, 0, 0, 0)
    return Span(meta.line, meta.column, meta.start_pos, meta.end_pos)


def _only(parts: list[Any], kind: type[Any]) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, kind))
