"""The tree of a rules file. Every node knows its place in the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the source: `line` and `column` count from 1, `start` and `end` from 0; `end` is exclusive."""

    line: int
    column: int
    start: int
    end: int


class SyntaxFault(Exception):
    """The source does not parse. Line and column count from 1; 0: the file as a whole."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span


# --- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    value: bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLiteral(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLiteral(Node):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """`{name}` in a path, or `{name=**}` when `is_glob`."""

    name: str
    is_glob: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLiteral(Node):
    segments: tuple[str | Variable | Expression, ...]
    """A fixed segment, a variable, or an expression from `$(...)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paren(Node):
    """Brackets do not change the value; they count towards the depth of an expression."""

    inner: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Node):
    target: Expression
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Node):
    target: Expression
    index: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Node):
    target: Expression
    low: Expression | None
    high: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """`name(...)`: a function of the file or of the language."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCall(Node):
    """`target.name(...)`: a method of a value, or a function of a package such as `math`."""

    target: Expression
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Node):
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Node):
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeTest(Node):
    operand: Expression
    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Node):
    condition: Expression
    when_true: Expression
    when_false: Expression


Expression = (
    Literal
    | Name
    | ListLiteral
    | MapLiteral
    | PathLiteral
    | Paren
    | Member
    | Index
    | Slice
    | Call
    | MethodCall
    | Unary
    | Binary
    | TypeTest
    | Conditional
)

# --- declarations


@dataclass(frozen=True, slots=True, kw_only=True)
class Let(Node):
    name: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Node):
    name: str
    parameters: tuple[Name, ...]
    lets: tuple[Let, ...]
    result: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow(Node):
    methods: tuple[Name, ...]
    condition: Expression | None
    """None: allowed without a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Node):
    segments: tuple[str | Variable, ...]
    functions: tuple[Function, ...]
    allows: tuple[Allow, ...]
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Node):
    name: str
    functions: tuple[Function, ...]
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Node):
    version: str
    """'1' where the file names none."""
    functions: tuple[Function, ...]
    services: tuple[Service, ...]
