"""Random conditions, documents, users and requests, in which every operator and method of the rules has a part.

Conditions are typed, since most random text would only fail; now and then a wrong type is put in on purpose. Each is
asked as it is and negated, so that true, false and an error can be told apart by what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from tests.rules.random_documents import FLOATS, INTS, STRINGS

HELPER = "function helper(first, second) { let joined = first + second; return joined.size() > 3 ? first : joined; }"
"""The function that conditions call."""
WRONG_TYPE = 0.04


@dataclass
class Conditions:
    """A source of expressions. `root` is what they read the document from."""

    random: Random
    root: str = "resource.data"
    depth: int = 3
    table: dict[str, list[Callable[[int], str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one, two, of = self._leaf, self._two, self.of
        data = self.root
        pick = self.random.choice
        self.table = {
            "bool": [
                lambda d: f"{of('int', d)} {pick(('<', '<=', '>', '>='))} {of('number', d)}",
                lambda d: f"{of('float', d)} {pick(('<', '<=', '>', '>='))} {of('number', d)}",
                lambda d: f"{of('string', d)} {pick(('<', '>=', '==', '!='))} {of('string', d)}",
                lambda d: f"{of('timestamp', d)} {pick(('<', '<=', '>', '>=', '==', '!='))} {of('timestamp', d)}",
                lambda d: f"{of('duration', d)} {pick(('<', '<=', '>', '>=', '==', '!='))} {of('duration', d)}",
                lambda d: f"{of('bytes', d)} {pick(('<', '<=', '>', '>=', '==', '!='))} {of('bytes', d)}",
                self._equality,
                self._equality,
                lambda d: f"!({of('bool', d)})",
                lambda d: f"({of('bool', d)} && {of('bool', d)})",
                lambda d: f"({of('bool', d)} || {of('bool', d)})",
                lambda d: f"({of('bool', d)} ? {of('bool', d)} : {of('bool', d)})",
                lambda d: f"({of('int', d)} in {of('ints', d)})",
                lambda d: f"({of('string', d)} in {of('strings', d)})",
                lambda d: f"({of('string', d)} in {of('map', d)})",
                lambda d: f"({of('string', d)} in {of('set', d)})",
                lambda d: f"{of('strings', d)}.{pick(('hasAny', 'hasAll', 'hasOnly'))}({of('strings', d)})",
                lambda d: f"{of('ints', d)}.{pick(('hasAny', 'hasAll', 'hasOnly'))}({of('ints', d)})",
                lambda d: f"{of('set', d)}.{pick(('hasAny', 'hasAll', 'hasOnly'))}({of(pick(('set', 'strings')), d)})",
                lambda d: f"{of('string', d)}.matches({self._pattern()})",
                lambda d: f"math.isNaN({of('number', d)})",
                lambda d: f"({of(self._any(), d)} is {self._type()})",
                lambda d: f"{pick(('exists', 'existsAfter'))}({self._document()})",
                lambda d: f"debug({of('bool', d)})",
                lambda d: f"{data}.b",
                lambda d: pick(("true", "true", "false")),
                lambda d: f"(request.auth {pick(('==', '!='))} null)",
                lambda d: f"(request.auth.uid {pick(('==', '!='))} {of('string', 0)})",
                lambda d: f"(request.method == {literal(pick(_METHODS))})",
            ],
            "int": [
                lambda d: f"({of('int', d)} {pick('+-*')} {of('int', d)})",
                lambda d: f"({of('int', d)} {pick('/%')} {of('int', d)})",
                lambda d: f"-({of('int', d)})",
                lambda d: f"{of('string', d)}.size()",
                lambda d: f"{of(pick(('strings', 'ints', 'map', 'set', 'bytes')), d)}.size()",
                lambda d: f"int({of(pick(('string', 'float', 'int')), d)})",
                lambda d: f"math.{pick(('abs', 'round'))}({of('number', d)})",
                lambda d: f"{of('timestamp', d)}.{pick(_PARTS)}()",
                lambda d: f"{of('duration', d)}.{pick(('seconds', 'nanos'))}()",
                lambda d: f"{of('ints', d)}[{pick('0123')}]",
                lambda d: f"({of('bool', d)} ? {of('int', d)} : {of('int', d)})",
                lambda d: one(str(pick(INTS[:8])), f"{data}.i", f"{data}.j", f"{data}.m.a", "request.auth.token.level"),
                lambda d: f"{data}.get({pick(_STEPS)}, 5)",
            ],
            "float": [
                lambda d: f"({of('float', d)} {pick('+-*/%')} {of('number', d)})",
                lambda d: f"float({of(pick(('string', 'float', 'int')), d)})",
                lambda d: f"math.{pick(('ceil', 'floor', 'sqrt'))}({of('number', d)})",
                lambda d: f"math.pow({of('number', d)}, {pick(('2', '0.5', '-1', '3.0'))})",
                lambda d: f"{of('latlng', d)}.{pick(('latitude', 'longitude'))}()",
                lambda d: f"{of('latlng', d)}.distance({of('latlng', d)})",
                lambda d: one(str(pick(FLOATS)), f"{data}.f"),
            ],
            "string": [
                lambda d: f"({of('string', d)} + {of('string', d)})",
                lambda d: f"{of('string', d)}.{pick(('lower', 'upper', 'trim'))}()",
                lambda d: f"{of('string', d)}.replace({self._pattern()}, {pick(_REPLACEMENTS)})",
                lambda d: f"string({of(pick(('int', 'float', 'bool', 'string', 'path')), d)})",
                lambda d: f"{of(pick(('strings', 'ints')), d)}.join({pick((literal(','), literal('')))})",
                lambda d: f"{of('strings', d)}[{pick('012')}]",
                lambda d: f"{of('string', d)}[{pick(('0', '1', '0:1', '1:2', '0:2', '1:', ':1'))}]",
                lambda d: f"{of('path', d)}[{pick('0123')}]",
                lambda d: f"{of('bytes', d)}.{pick(('toHexString', 'toBase64'))}()",
                lambda d: f"({of('bool', d)} ? {of('string', d)} : {of('string', d)})",
                lambda d: one(literal(pick(STRINGS)), f"{data}.s", f"{data}.u", f"{data}.m.b.c", "request.auth.uid"),
                lambda d: pick(("request.auth.token.sub", "request.auth.token.role", "request.method", "id")),
                lambda d: f"helper({of('string', d)}, {of('string', d)})",
            ],
            "bytes": [
                lambda d: f"{of('string', d)}.toUtf8()",
                lambda d: f"hashing.{pick(('md5', 'sha256', 'crc32', 'crc32c'))}({of(pick(('string', 'bytes')), d)})",
                lambda d: one("b'abc'", r"b'\xff\x00'", f"{data}.y"),
            ],
            "ints": [
                lambda d: f"[{of('int', d)}, {of('int', d)}]",
                lambda d: f"{of('ints', d)}.{pick(('concat', 'removeAll'))}({of('ints', d)})",
                lambda d: f"{of('ints', d)}[{pick(('0:1', '1:2', '0:2'))}]",
                lambda d: f"{{'b': {of('int', d)}, 'a': {of('int', d)}}}.values()",
                lambda d: one("[]", "[1, 2, 3]", f"{data}.l", f"{data}.l", "request.auth.token.numbers"),
            ],
            "strings": [
                lambda d: f"[{of('string', d)}, {of('string', d)}]",
                lambda d: f"{of('strings', d)}.{pick(('concat', 'removeAll'))}({of('strings', d)})",
                lambda d: f"{of('string', d)}.split({self._pattern()})",
                lambda d: f"{of('map', d)}.keys()",
                lambda d: one("['a', 'abc']", f"{data}.ls", f"{data}.ls", f"{data}.keys()"),
            ],
            "set": [
                lambda d: f"{of('strings', d)}.toSet()",
                lambda d: f"{of('set', d)}.{pick(('union', 'intersection', 'difference'))}({of('set', d)})",
                lambda d: f"{of('map', d)}.diff({of('map', d)}).{pick(_KEYS)}()",
                lambda d: f"{data}.diff({{'s': 'abc', 'zz': 1, 'i': 1}}).{pick(_KEYS)}()",
            ],
            "map": [
                lambda d: f"{{'a': {of('int', d)}, 'b': {{'c': {of('string', d)}}}}}",
                lambda d: f"{{{literal(pick(STRINGS[1:4]))}: {of(self._any(), d)}}}",
                lambda d: one(f"{data}.m", "{}", f"{data}.get('m', {{}})", "{'a': 1}"),
                lambda d: f"{pick(('get', 'getAfter'))}({self._document()}).data.m",
            ],
            "path": [
                lambda d: f"(/a/$({of(pick(('string', 'int', 'path')), d)}))",
                lambda d: pick(("(/a/{x})", "(/a/{x}).bind({'x': 'b'})", "path('/{x}/{y}').bind({'x': 'b'})")),
                lambda d: f"path({pick((literal('/a/b'), literal('a/b/c'), literal('/{x}/b')))})",
                lambda d: f"path('/{{x}}/b').bind({{'x': {of('string', d)}}})",
                lambda d: one("(/a/b)", "request.path", f"(/databases/$(database)/documents/a/$({data}.u))"),
                lambda d: f"{of('path', d)}[{pick(('0:1', '1:2', '0:2'))}]",
            ],
            "timestamp": [
                lambda d: f"({of('timestamp', d)} {pick('+-')} {of('duration', d)})",
                lambda d: f"timestamp.date({pick((2024, 1970))}, {pick((2, 12, 13))}, {pick((1, 29, 31))})",
                lambda d: f"timestamp.value({of('int', d)})",
                lambda d: f"{of('timestamp', d)}.date()",
                lambda d: one(f"{data}.t", f"{data}.t"),
            ],
            "duration": [
                lambda d: f"duration.value({of('int', d)}, {pick([literal(u) for u in _UNITS])})",
                lambda d: f"duration.time({pick('0123')}, {pick('059')}, 7, 9)",
                lambda d: f"duration.abs({of('duration', d)})",
                lambda d: f"({of('duration', d)} {pick('+-')} {of('duration', d)})",
                lambda d: f"-({of('duration', d)})",
                lambda d: f"({of('timestamp', d)} - {of('timestamp', d)})",
                lambda d: f"{of('timestamp', d)}.time()",
            ],
            "latlng": [
                lambda d: f"latlng.value({of('number', d)}, {pick(('0', '20.25', '-170'))})",
                lambda d: one(f"{data}.g", f"{data}.g", "latlng.value(1, 2)"),
            ],
            "number": [lambda d: two("int", "float", d)],
            "null": [lambda d: one("null", f"{data}.n")],
        }

    def of(self, kind: str, depth: int) -> str:
        """An expression of that type, or now and then of another."""
        if self.random.random() < WRONG_TYPE:
            kind = self._any()
        choices = self.table[kind]
        if depth > 0:
            return self.random.choice(choices)(depth - 1)
        return self.random.choice(_FLAT[kind]).replace("DATA", self.root)

    def condition(self) -> str:
        """Mostly one in which a certain operator or method has a part, so that each comes often enough."""
        if self.random.random() < 0.2:
            return self.of("bool", self.random.randint(1, self.depth))
        wanted = self.random.choice(_WANTED)
        kind, number = self.random.choice(_makers()[wanted])
        found = ""
        for _ in range(100):
            found = self.table[kind][number](self.random.randint(0, 1))
            if wanted in found:
                break
        return found if kind == "bool" else f"({found} {self.random.choice(('==', '!='))} {self.of(kind, 0)})"

    def _two(self, first: str, second: str, depth: int) -> str:
        return self.of(self.random.choice((first, second)), depth)

    def _leaf(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _any(self) -> str:
        return self.random.choice([name for name in self.table if name != "number"])

    def _equality(self, depth: int) -> str:
        kind = self._any()
        other = kind if self.random.random() < 0.85 else self._any()
        return f"({self.of(kind, depth)} {self.random.choice(('==', '==', '!='))} {self.of(other, depth)})"

    def _pattern(self) -> str:
        return literal(self.random.choice(_PATTERNS))

    def _type(self) -> str:
        return self.random.choice(_TYPES)

    def _document(self) -> str:
        named = self.random.choice(("a/there", "a/missing", f"a/$({self.root}.u)", "a/$(request.auth.uid)", "a/$(id)"))
        return f"/databases/$(database)/documents/{named}"


def literal(value: Any) -> str:
    """The source of a string or of a list of strings."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return "'" + str(value) + "'"


_PATTERNS = ("a", "[a-z]+", ".*", "(?i)ABC", "a|b", ",", "", "x*", "[^a]", r"\\d+")
_REPLACEMENTS = ("'-'", "'[$0]'", "''")
_STEPS = ("'i'", "['m', 'a']", "['m', 'z']", "'zz'")
_METHODS = ("get", "list", "create", "update", "delete")
_PARTS = ("year", "month", "day", "hours", "minutes", "seconds", "nanos", "dayOfWeek", "dayOfYear", "toMillis")
_KEYS = ("addedKeys", "removedKeys", "changedKeys", "unchangedKeys", "affectedKeys")
_UNITS = ("w", "d", "h", "m", "s", "ms", "ns")
_TYPES = (
    *("bool", "bytes", "duration", "float", "int", "latlng", "list", "map"),
    *("map_diff", "number", "path", "set", "string", "timestamp", "constraint", "vector"),
)
_WANTED = (
    *(
        f" {operator} "
        for operator in ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "?", "in")
    ),
    *(f" is {name})" for name in _TYPES),
    *(f".{name}(" for name in (*_PARTS, *_KEYS)),
    *(f".{name}(" for name in ("size", "lower", "upper", "trim", "replace", "split", "matches", "toUtf8", "join")),
    *(f".{name}(" for name in ("hasAny", "hasAll", "hasOnly", "concat", "removeAll", "toSet", "keys", "values", "get")),
    *(
        f".{name}("
        for name in ("union", "intersection", "difference", "bind", "toHexString", "toBase64", "date", "time")
    ),
    *(f".{name}(" for name in ("latitude", "longitude", "distance", "diff")),
    *(f"math.{name}(" for name in ("abs", "round", "ceil", "floor", "sqrt", "pow", "isNaN")),
    *(f"hashing.{name}(" for name in ("md5", "sha256", "crc32", "crc32c")),
    *("timestamp.date(", "timestamp.value(", "duration.value(", "duration.time(", "duration.abs(", "latlng.value("),
    *("exists(", "existsAfter(", "get(/", "getAfter(/", "debug(", "int(", "float(", "string(", "path(", "helper("),
    *("!(", "-(", "]", "[0:"),
)
"""Pieces of source: each operator, method and function of the language."""
_FLAT = {
    "bool": ("true", "false", "DATA.b", "request.auth != null"),
    "int": ("(0)", "(1)", "(2)", "(7)", "(-1)", "DATA.i", "DATA.j", "DATA.m.a", "request.auth.token.level"),
    "float": ("(0.5)", "(1.5)", "(-2.5)", "DATA.f", "DATA.f"),
    "number": ("(2)", "(1.0)", "DATA.i", "DATA.f"),
    "string": ("''", "'a'", "'abc'", "'x'", "DATA.s", "DATA.u", "DATA.m.b.c", "request.auth.uid", "id"),
    "bytes": ("b'abc'", "DATA.y"),
    "ints": ("[1, 2]", "[]", "DATA.l", "request.auth.token.numbers"),
    "strings": ("['a', 'abc']", "DATA.ls", "DATA.keys()"),
    "set": ("['a'].toSet()", "DATA.ls.toSet()"),
    "map": ("{'a': 1}", "{}", "DATA.m"),
    "path": ("(/a/b)", "request.path"),
    "timestamp": ("timestamp.date(2024, 2, 29)", "DATA.t"),
    "duration": ("duration.value(1, 'h')", "duration.value(-90, 's')"),
    "latlng": ("latlng.value(1, 2)", "DATA.g"),
    "null": ("null", "DATA.n"),
}
"""What an expression of each type ends in; DATA stands for the document's data."""


@cache
def _makers() -> dict[str, list[tuple[str, int]]]:
    """For each piece of source, the entries of the table that make it often enough, found by trying."""
    found: dict[str, list[tuple[str, int]]] = {wanted: [] for wanted in _WANTED}
    for kind, entries in Conditions(Random(0)).table.items():
        for number, entry in enumerate(entries):
            samples = [entry(0) for _ in range(1_000)]
            for wanted in _WANTED:
                if sum(wanted in sample for sample in samples) > 12:
                    found[wanted].append((kind, number))
    missing = [wanted for wanted, makers in found.items() if not makers]
    assert not missing, f"no entry makes {missing}"
    return found
