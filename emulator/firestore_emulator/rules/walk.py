"""Walk over the tree of an expression."""

from __future__ import annotations

from collections.abc import Iterator

from firestore_emulator.rules import ast


def steps(node: ast.Expression) -> Iterator[tuple[ast.Expression, int]]:
    """Yield the children of a node, each with the levels that it adds to the depth of the expression."""
    match node:
        case ast.Member():
            yield node.target, 0
        case ast.Paren():
            yield node.inner, 1
        case ast.ListLiteral():
            yield from ((item, 1) for item in node.items)
        case ast.MapLiteral():
            for key, value in node.entries:
                yield key, 1
                yield value, 1
        case ast.PathLiteral():
            for part in node.segments:
                if isinstance(part, ast.Node):
                    yield part, 1
        case ast.Index():
            yield node.target, 1
            yield node.index, 1
        case ast.Slice():
            yield node.target, 1
            for bound in (node.low, node.high):
                if bound is not None:
                    yield bound, 1
        case ast.Call():
            yield from ((argument, 1) for argument in node.arguments)
        case ast.MethodCall():
            yield node.target, 1
            yield from ((argument, 1) for argument in node.arguments)
        case ast.Unary() | ast.TypeTest():
            yield node.operand, 1
        case ast.Binary():
            yield node.left, 1
            yield node.right, 1
        case ast.Conditional():
            yield node.condition, 1
            yield node.when_true, 1
            yield node.when_false, 1


def walk(node: ast.Expression) -> Iterator[ast.Expression]:
    """Yield the node and every expression inside it."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(child for child, _ in steps(one))


def without_parens(node: ast.Expression) -> ast.Expression:
    while isinstance(node, ast.Paren):
        node = node.inner
    return node
