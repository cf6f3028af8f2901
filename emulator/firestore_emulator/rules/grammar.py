"""Parse a rules file. A syntax error names its line and column, and what the parser expected there.

A slash directly before a path segment begins a path, even where a division was meant: `a / b` divides and `a/b` does
not parse. Google's compiler reads it the same way.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken
from lark.exceptions import VisitError

from firestore_emulator.rules import ast
from firestore_emulator.rules.ast import SyntaxFault
from firestore_emulator.rules.tree import Builder

_SEGMENT = r"(?:\([A-Za-z0-9_\-.~:@+*&']+\)|(?:[A-Za-z0-9_\-.~:@+*&']|%[0-9A-Fa-f]{2})+)"
_ESCAPE = r"\\(?:[\\'\"ntrbf]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-3][0-7][0-7])"
_QUOTED = rf"(?:'(?:[^'\\\r\n]|{_ESCAPE})*'|\"(?:[^\"\\\r\n]|{_ESCAPE})*\")"
_RESERVED = "function|match|allow|let|return|if|service|rules_version|import|is|in|true|false|null"

_GRAMMAR = rf"""
start: version? (function | service)+
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


def parse(source: str) -> ast.File:
    """Return the tree of `source`; SyntaxFault if it does not parse."""
    if not source.strip():
        raise SyntaxFault(0, 0, "Rules content empty. Compilation aborted.")
    try:
        tree = _parser().parse(source)
        file: ast.File = Builder().transform(tree)
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
