"""lark's tree to the nodes of `ast`."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer
from lark.tree import Meta

from firestore_emulator.rules import ast, literals
from firestore_emulator.rules.ast import Span, SyntaxFault


class _Declarations:
    def start(self, span: Span, parts: list[Any]) -> ast.File:
        version = parts.pop(0) if parts and isinstance(parts[0], str) else "1"
        return ast.File(
            span=span,
            version=version,
            functions=_only(parts, ast.Function),
            services=_only(parts, ast.Service),
        )

    def version(self, span: Span, parts: list[Any]) -> str:
        version = literals.string(parts[0])
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


class _Operators:
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
        if isinstance(operand, literals.Unsigned):
            return literals.negative(span, operand)
        return ast.Unary(span=span, operator="-", operand=operand)


class _Operands:
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


class _Literals:
    def true(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=True)

    def false(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=False)

    def null(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=None)

    def integer(self, span: Span, parts: list[Any]) -> ast.Literal:
        return literals.integer(span, str(parts[0]))

    def fraction(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=float(parts[0]))

    def string(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=literals.string(parts[0]))

    def octets(self, span: Span, parts: list[Any]) -> ast.Literal:
        return ast.Literal(span=span, value=literals.octets(span, str(parts[0])))


class Builder(_Declarations, _Operators, _Operands, _Literals, Transformer[Token, Any]):
    """Build the nodes of `ast` from lark's tree, bottom up. Each method is named after its rule in the grammar."""

    def _call_userfunc(self, tree: Any, new_children: list[Any] | None = None) -> Any:
        children = tree.children if new_children is None else new_children
        return getattr(self, tree.data)(_span(tree.meta), children)


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
