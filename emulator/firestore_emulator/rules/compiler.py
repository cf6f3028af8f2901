"""Compile expressions to Python closures, once for each rules file: a request then walks no tree.

Each closure counts what Google's evaluator counts: one for an expression, one more for `&&` and `||` if they look at
their right side, one more for the type of a type test, and one more for a `let`.
"""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rules import ast, calls, operands, operators
from firestore_emulator.rules.evaluation import Closure
from firestore_emulator.rules.packages import FUNCTIONS, PACKAGES
from firestore_emulator.rules.scope import CompiledFunction, Scope
from firestore_emulator.rules.values import TYPES, Unbound

Wrap = Callable[[ast.Expression, Closure], Closure]
"""Wraps the closure of each expression except literals, for example to record its values."""


class Compiler:
    def __init__(self, wrap: Wrap | None = None) -> None:
        self._wrap = wrap

    def declare(self, functions: tuple[ast.Function, ...], scope: Scope) -> None:
        """Add the functions to the scope. They may call each other in any order."""
        declared = [CompiledFunction(function, scope) for function in functions]
        for function in declared:
            scope.functions[function.declared.name] = function
        for function in declared:
            self._compile_body(function)

    def _compile_body(self, function: CompiledFunction) -> None:
        names = {parameter.name: number for number, parameter in enumerate(function.declared.parameters)}
        lets: list[Closure] = []
        for let in function.declared.lets:
            lets.append(self.compile(let.value, function.scope, dict(names)))
            names[let.name] = len(names)
        function.lets = tuple(lets)
        function.result = self.compile(function.declared.result, function.scope, names)

    def compile(self, node: ast.Expression, scope: Scope, names: dict[str, int]) -> Closure:
        """`names` are the parameters and lets of the function that the expression stands in."""
        if isinstance(node, ast.Paren):
            return self.compile(node.inner, scope, names)
        closure = self._closure(node, scope, names)
        if self._wrap is None or isinstance(node, ast.Literal):
            return closure
        return self._wrap(node, closure)

    def _closure(self, node: ast.Expression, scope: Scope, names: dict[str, int]) -> Closure:
        def sub(child: ast.Expression) -> Closure:
            return self.compile(child, scope, names)

        match node:
            case ast.Literal():
                return operands.constant(node.value)
            case ast.Name():
                return operands.variable(node.name, scope, names)
            case ast.ListLiteral():
                return operands.list_of([sub(item) for item in node.items])
            case ast.MapLiteral():
                return operands.map_of([(sub(key), sub(value)) for key, value in node.entries])
            case ast.PathLiteral():
                return operands.path_of([self._segment(part, sub) for part in node.segments])
            case ast.Member():
                return operands.member(sub(node.target), node.name)
            case ast.Index():
                return operands.index(sub(node.target), sub(node.index))
            case ast.Slice():
                low = None if node.low is None else sub(node.low)
                high = None if node.high is None else sub(node.high)
                return operands.slice_of(sub(node.target), low, high)
            case ast.Call():
                return self._call(node.name, [sub(argument) for argument in node.arguments], scope)
            case ast.MethodCall():
                return self._method(node, scope, names)
            case ast.Unary():
                return (operators.negation if node.operator == "!" else operators.minus)(sub(node.operand))
            case ast.Binary():
                return operators.binary(node.operator, sub(node.left), sub(node.right))
            case ast.TypeTest():
                return operators.type_test(sub(node.operand), TYPES[node.type_name])
            case ast.Conditional():
                return operators.conditional(sub(node.condition), sub(node.when_true), sub(node.when_false))
        raise AssertionError(f"no such expression: {node}")  # the grammar makes no other

    @staticmethod
    def _segment(
        part: str | ast.Variable | ast.Expression, sub: Callable[[ast.Expression], Closure]
    ) -> str | Unbound | Closure:
        if isinstance(part, str):
            return part
        return Unbound(part.name, part.is_glob) if isinstance(part, ast.Variable) else sub(part)

    @staticmethod
    def _call(name: str, arguments: list[Closure], scope: Scope) -> Closure:
        function = scope.function(name)
        if function is not None:
            return calls.function_call(function, arguments)
        if name in calls.DOCUMENT_FUNCTIONS:
            return calls.document_access(name, arguments)
        if name in FUNCTIONS:
            return calls.built_in(FUNCTIONS[name], arguments)
        return operands.failing(f"Function not found error: Name: [{name}].")

    def _method(self, node: ast.MethodCall, scope: Scope, names: dict[str, int]) -> Closure:
        arguments = [self.compile(argument, scope, names) for argument in node.arguments]
        target = node.target
        if isinstance(target, ast.Name) and _is_package(target.name, scope, names):
            package = PACKAGES[target.name]
            if node.name in package:
                return calls.built_in(package[node.name], arguments)
            return operands.failing(f"Function not found error: Name: [{target.name}.{node.name}].")
        return calls.method_call(self.compile(target, scope, names), node.name, arguments)


def _is_package(name: str, scope: Scope, names: dict[str, int]) -> bool:
    return name in PACKAGES and name not in names and not scope.wildcard(name)
