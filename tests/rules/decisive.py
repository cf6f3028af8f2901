"""Which operators and methods of a condition were decisive: had one failed, an allowed request would be refused.

`&&` and `||` absorb failures. Below them an operand counts only if the value of the whole proves that no other operand
could have absorbed its failure: both sides of an `&&` that is true, and of an `||` that is false.
"""

from __future__ import annotations

from collections.abc import Iterator

from firestore_emulator.rules import ast
from firestore_emulator.rules.calls import DOCUMENT_FUNCTIONS
from firestore_emulator.rules.methods import METHODS
from firestore_emulator.rules.operators import OPERATIONS
from firestore_emulator.rules.packages import FUNCTIONS, PACKAGES
from firestore_emulator.rules.ruleset import compile_rules
from firestore_emulator.rules.values import TYPES
from firestore_emulator.rules.walk import steps
from tests.rules.random_rules import HELPER

LANGUAGE = frozenset(
    {
        *OPERATIONS,
        *("&&", "||", "?:", "[]", "[:]", "unary !", "unary -", "helper()"),
        *(f"is {name}" for name in TYPES),
        *(f".{name}" for methods in METHODS.values() for name in methods),
        *(f"{package}.{name}" for package, functions in PACKAGES.items() for name in functions),
        *(f"{name}()" for name in (*FUNCTIONS, *DOCUMENT_FUNCTIONS)),
    }
)
"""Every operator, type, method and function, by the names that `decisive` gives them."""


def decisive(condition: str) -> set[str]:
    """The decisive parts of a condition that is true."""
    source = f"service cloud.firestore {{ match /a/{{id}} {{ {HELPER} allow get: if {condition}; }} }}"
    allow = compile_rules(source).file.services[0].matches[0].allows[0]
    assert allow.condition is not None
    return set(_parts(allow.condition, True))


def _parts(node: ast.Expression, value: bool | None) -> Iterator[str]:
    """`value` is what the node must have come to; None: unknown."""
    match node:
        case ast.Paren():
            yield from _parts(node.inner, value)
            return
        case ast.Unary(operator="!"):
            yield "unary !"
            yield from _parts(node.operand, None if value is None else not value)
            return
        case ast.Binary(operator="&&" | "||"):
            yield node.operator
            if value is (node.operator == "&&"):
                yield from _parts(node.left, value)
                yield from _parts(node.right, value)
            return
        case ast.Conditional():
            yield "?:"
            yield from _parts(node.condition, None)
            return
        case _:
            name = _name(node)
            if name is not None:
                yield name
    for child, _ in steps(node):
        yield from _parts(child, None)


def _name(node: ast.Expression) -> str | None:
    match node:
        case ast.Binary():
            return node.operator
        case ast.Unary():
            return f"unary {node.operator}"
        case ast.TypeTest():
            return f"is {node.type_name}"
        case ast.Call():
            return f"{node.name}()"
        case ast.Index():
            return "[]"
        case ast.Slice():
            return "[:]"
        case ast.MethodCall(target=ast.Name(name=package)) if package in PACKAGES:
            return f"{package}.{node.name}"
        case ast.MethodCall():
            return f".{node.name}"
    return None
