"""Find the mistakes of a file that parses. An error refuses the file; a warning does not."""

from __future__ import annotations

from dataclasses import dataclass, field

from firestore_emulator.rules import ast, text
from firestore_emulator.rules.ast import Span, SyntaxFault
from firestore_emulator.rules.call_graph import CallGraph
from firestore_emulator.rules.calls import DOCUMENT_FUNCTIONS
from firestore_emulator.rules.limits import MAX_ARGUMENTS, MAX_EXPRESSION_DEPTH, MAX_LETS
from firestore_emulator.rules.literals import check_integer
from firestore_emulator.rules.packages import FUNCTIONS, PACKAGES
from firestore_emulator.rules.values import TYPES, Failure
from firestore_emulator.rules.walk import steps, walk

METHODS = frozenset({"get", "list", "create", "update", "delete", "read", "write"})
_TYPE_LIST = "bool,bytes,constraint,duration,float,int,latlng,list,vector,set,number,map,string,timestamp,path,map_diff"


@dataclass(frozen=True, slots=True)
class Found:
    span: Span | None
    message: str
    is_error: bool


@dataclass
class _Names:
    """The names that are declared around a piece of the file."""

    outer: _Names | None = None
    functions: dict[str, ast.Function] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    has_glob: bool = False
    """Whether the path of a match block around it has a `{name=**}`."""

    def function(self, name: str) -> ast.Function | None:
        names: _Names | None = self
        while names is not None:
            if name in names.functions:
                return names.functions[name]
            names = names.outer
        return None

    def has_variable(self, name: str) -> bool:
        names: _Names | None = self
        while names is not None:
            if name in names.variables:
                return True
            names = names.outer
        return False


def check(file: ast.File) -> list[Found]:
    """Return every error and warning about the file, in the order of the source."""
    checker = _Checker(file)
    checker.run()
    return sorted(checker.found, key=lambda one: one.span.start if one.span is not None else -1)


class _Checker:
    def __init__(self, file: ast.File) -> None:
        self._file = file
        self.found: list[Found] = []
        self._reported: set[tuple[int, str]] = set()
        self._calls = CallGraph()

    def _error(self, span: Span, message: str) -> None:
        self._add(Found(span, message, True))

    def _warn(self, span: Span | None, message: str) -> None:
        self._add(Found(span, message, False))

    def _add(self, found: Found) -> None:
        key = (-1 if found.span is None else found.span.start, found.message)
        if key not in self._reported:
            self._reported.add(key)
            self.found.append(found)

    def run(self) -> None:
        file = self._file
        if file.version == "1":
            self._warn(
                None, "Ruleset uses old version (version [1]). Please update to the latest version (version [2])."
            )
        top = _Names()
        self._functions(file.functions, top)
        seen: set[str] = set()
        for service in file.services:
            if service.name in seen:
                self._error(service.span, "Duplicate service name declaration.")
            seen.add(service.name)
            if not service.functions and not service.matches:
                self._error(service.span, "The 'service' body must contain at least one declaration.")
            names = _Names(top)
            self._functions(service.functions, names)
            for match in service.matches:
                self._match(match, names)
        for function, message in self._calls.faults():
            self._error(function.span, message)
        if not file.services:
            self._warn(None, "No service is declared: nothing is allowed.")

    def _match(self, match: ast.Match, outer: _Names) -> None:
        variables = [part for part in match.segments if isinstance(part, ast.Variable)]
        seen: set[str] = set()
        for variable in variables:
            if variable.name in seen:
                self._error(match.span, f"Variable {variable.name} already exists in the PathTemplate.")
            self._refuse_package(variable.name, match.span)
            seen.add(variable.name)
        globs = [index for index, part in enumerate(match.segments) if isinstance(part, ast.Variable) and part.is_glob]
        if len(globs) > 1 or (globs and outer.has_glob and self._file.version == "2"):
            message = "Only one glob match is permitted in a match declaration path."
            self._error(match.span, f"Invalid glob match expression. {message}")
        elif globs and self._file.version == "1" and globs[0] != len(match.segments) - 1:
            self._error(
                match.span,
                "Invalid glob match expression. Glob matches are permitted as the last segment in a match declaration "
                "path.",
            )
        if not match.functions and not match.allows and not match.matches:
            self._error(match.span, "The 'match' body must contain at least one declaration.")
        names = _Names(outer, variables=frozenset(seen), has_glob=outer.has_glob or bool(globs))
        self._functions(match.functions, names)
        for allow in match.allows:
            for method in allow.methods:
                if method.name not in METHODS:
                    self._warn(method.span, f"Invalid method name: {method.name}.")
            if allow.condition is not None:
                self._expression(allow.condition, names, frozenset())
        for inner in match.matches:
            self._match(inner, names)

    # --- functions

    def _functions(self, functions: tuple[ast.Function, ...], names: _Names) -> None:
        for function in functions:
            if function.name in names.functions:
                self._error(function.span, f"Function {function.name} is already defined.")
            names.functions[function.name] = function
        for function in functions:
            self._function(function, names)

    def _function(self, function: ast.Function, names: _Names) -> None:
        if len(function.parameters) > MAX_ARGUMENTS:
            message = f"Maximum allowed function arguments of {MAX_ARGUMENTS} for function {function.name} is reached."
            self._error(function.span, message)
        if len(function.lets) > MAX_LETS:
            span = function.lets[MAX_LETS].span
            self._error(span, "Maximum allowed variable count of 10 for a given function has been reached.")
        bound: set[str] = set()
        bindings = [(one.name, one.span) for one in function.parameters]
        bindings += [(one.name, one.span) for one in function.lets]
        for name, span in bindings:
            if name in bound:
                self._error(span, f"The identifier [{name}] is already bound in the current scope.")
            self._refuse_package(name, span)
            bound.add(name)
        known = {parameter.name for parameter in function.parameters}
        for let in function.lets:
            self._expression(let.value, names, frozenset(known))
            known.add(let.name)
        self._expression(function.result, names, frozenset(known))
        called = [
            declared
            for body in (function.result, *(let.value for let in function.lets))
            for call in walk(body)
            if isinstance(call, ast.Call) and (declared := names.function(call.name)) is not None
        ]
        self._calls.add(function, called)

    # --- expressions

    def _expression(self, node: ast.Expression, names: _Names, local: frozenset[str], depth: int = 1) -> None:
        try:
            check_integer(node)
        except SyntaxFault as fault:
            self._error(node.span, fault.message)
        if depth > MAX_EXPRESSION_DEPTH:
            self._error(node.span, "Expression is too complex to evaluate safely.")
            return
        match node:
            case ast.Name():
                self._name(node, names, local)
            case ast.TypeTest():
                if node.type_name not in TYPES:
                    self._error(
                        node.span,
                        "An unsupported type identifier was used with the 'is' operator. "
                        f"Received {node.type_name}. Expected one of {_TYPE_LIST}",
                    )
            case ast.Call():
                self._call(node, names)
            case ast.MethodCall():
                self._method(node, names, local, depth)
                return
        for child, step in steps(node):
            self._expression(child, names, local, depth + step)

    def _name(self, node: ast.Name, names: _Names, local: frozenset[str]) -> None:
        if node.name in local or names.has_variable(node.name) or node.name in ("request", "resource"):
            return
        if not self._refuse_package(node.name, node.span):
            self._warn(node.span, f"Invalid variable name: {node.name}.")

    def _refuse_package(self, name: str, span: Span) -> bool:
        if name in PACKAGES:
            self._error(span, f"{name} is a package and cannot be used as variable name.")
        return name in PACKAGES

    def _call(self, node: ast.Call, names: _Names) -> None:
        declared = names.function(node.name)
        if declared is not None:
            if len(declared.parameters) != len(node.arguments):
                self._warn(node.span, f"Incorrect number of arguments supplied to function: {node.name}.")
        elif node.name not in DOCUMENT_FUNCTIONS and node.name not in FUNCTIONS:
            self._warn(node.span, f"Invalid function name: {node.name}.")

    def _method(self, node: ast.MethodCall, names: _Names, local: frozenset[str], depth: int) -> None:
        target = node.target
        is_package = (
            isinstance(target, ast.Name)
            and target.name in PACKAGES
            and target.name not in local
            and not names.has_variable(target.name)
        )
        if not is_package:
            self._expression(target, names, local, depth + 1)
        elif isinstance(target, ast.Name) and node.name not in PACKAGES[target.name]:
            self._warn(node.span, f"Invalid function name: {target.name}.{node.name}.")
        self._pattern(node)
        for argument in node.arguments:
            self._expression(argument, names, local, depth + 1)

    def _pattern(self, node: ast.MethodCall) -> None:
        """Compile the pattern of matches(). As in Google's compiler, others fail only when they are evaluated."""
        if node.name != "matches" or not node.arguments or not isinstance(node.arguments[0], ast.Literal):
            return
        pattern = node.arguments[0].value
        if isinstance(pattern, str):
            try:
                text.matcher(pattern)
            except Failure as failure:
                self._error(node.arguments[0].span, str(failure))
