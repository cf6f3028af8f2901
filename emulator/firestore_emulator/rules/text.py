"""Strings as rules see them: lengths, indexes and order in UTF-16, letters of ASCII, regular expressions of RE2."""

from __future__ import annotations

import math
import re
import struct
from functools import lru_cache
from typing import Any

import re2

from firestore_emulator.rules.values import LARGEST, SMALLEST, Failure, Path, Value, paired

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_BLANKS = "".join(map(chr, range(0x21)))
_MOST_TEXT = 1_000_000
"""Characters that a method may make; a replacement could otherwise make any number."""


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def part(text: str, low: int, high: int) -> str:
    if text.isascii():
        return text[low:high]
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * low : 2 * high].decode("utf-16-le", "surrogatepass")


def ordered(text: str) -> str:
    """A string that compares by code points as `text` compares by units of UTF-16, which is the order of the rules."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(units) // 2}H", units)))


def upper(text: str) -> str:
    return text.translate(_UPPER)


def lower(text: str) -> str:
    return text.translate(_LOWER)


def trim(text: str) -> str:
    return text.strip(_BLANKS)


def utf8(text: str) -> bytes:
    return text.encode(errors="replace")


# --- regular expressions


@lru_cache(maxsize=1_024)
def expression(pattern: str) -> Any:
    """Compile an RE2 pattern that finds matches and their groups; Failure if it is invalid."""
    return _compiled(pattern, captures=True)


@lru_cache(maxsize=1_024)
def matcher(pattern: str) -> Any:
    """Compile an RE2 pattern that only says whether UTF-8 bytes match; Failure if it is invalid."""
    return _compiled(pattern, captures=False)


def _compiled(pattern: str, *, captures: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    try:
        return re2.compile(pattern if captures else _encoded(pattern), options=options)
    except (re2.error, UnicodeError):
        raise Failure(f"Invalid regular expression pattern. Pattern: {pattern}.") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches the whole text. Over bytes, because RE2 needs no offsets of characters then."""
    return matcher(pattern).fullmatch(_encoded(text)) is not None


_HALVES = {half: 0x10F800 + half - 0xD800 for half in range(0xD800, 0xE000)}
"""Half of a surrogate pair has no form in UTF-8: a character that is in no use stands for it."""


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeError:
        return text.translate(_HALVES).encode()


def split(text: str, pattern: str) -> list[str]:
    """Without the empty strings at the end; never empty."""
    found: list[str] = []
    last = 0
    for match in _found(text, pattern):
        found.append(text[last : match.start()])
        last = match.end()
    found.append(text[last:])
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found


def replace(text: str, pattern: str, replacement: str) -> str:
    parts: list[str] = []
    last = length = 0
    for match in _found(text, pattern):
        parts += [text[last : match.start()], _filled(replacement, match)]
        length += len(parts[-1])
        if length > _MOST_TEXT:
            raise Failure("The replaced string is too long.")
        last = match.end()
    return paired("".join([*parts, text[last:]]))


def _found(text: str, pattern: str) -> list[Any]:
    """Each match, also an empty one right behind the one before it."""
    compiled = expression(pattern)
    matches: list[Any] = []
    position = 0
    try:
        while position <= len(text) and (match := compiled.search(text, position)) is not None:
            matches.append(match)
            position = match.end() + (1 if match.start() == match.end() else 0)
    except UnicodeError:
        raise Failure("The string holds half a character.") from None
    return matches


def _filled(replacement: str, match: Any) -> str:
    """`$1`, `${name}` and `\\` before a character that is meant itself."""
    if "$" not in replacement and "\\" not in replacement:
        return replacement
    filled: list[str] = []
    position, end = 0, len(replacement)
    groups = len(match.groups())
    while position < end:
        character = replacement[position]
        following = replacement[position + 1 : position + 2]
        if not following or character not in "\\$":
            filled.append(character)
            position += 1
        elif character == "\\":
            filled.append(following)
            position += 2
        elif following in "0123456789":
            number, position = int(following), position + 2
            while position < end and replacement[position] in "0123456789":
                longer = number * 10 + int(replacement[position])
                if longer > groups:
                    break
                number, position = longer, position + 1
            if number > groups:
                raise Failure(f"The replacement asks for group {number}, and the pattern has {groups}.")
            filled.append(match.group(number) or "")
        elif following == "{" and (close := replacement.find("}", position)) >= 0:
            name = replacement[position + 2 : close]
            if name not in match.groupdict():
                raise Failure(f"The pattern has no group {name}.")
            filled.append(match.group(name) or "")
            position = close + 1
        else:
            raise Failure("A $ in a replacement must be followed by a group.")
    return "".join(filled)


# --- conversions

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?", re.ASCII)


def integer_of(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 1_000:
        raise Failure(f"int() cannot read '{text[:50]}'.")
    value = int(text)
    if not SMALLEST <= value <= LARGEST:
        raise Failure("The number is outside 64 bits.")
    return value


def float_of(text: str) -> float:
    text = text.strip(_BLANKS)
    if _FLOAT.fullmatch(text):
        return float(text.rstrip("fFdD") if not text.endswith(("NaN", "Infinity")) else text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("fFdD") if "p" not in text[-2:].lower() else text)
        except OverflowError:
            return math.inf if text[0] != "-" else -math.inf
    raise Failure(f"float() cannot read '{text[:50]}'.")


def string_of(value: Value) -> str:
    """As string() and join() write a value."""
    if type(value) is str:
        return value
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return _written(value)
    if type(value) is Path:
        return "/" + "/".join(part if type(part) is str else "" for part in value.segments)
    raise Failure("Only null, bool, int, float, string and path have a string form.")


def _written(value: float) -> str:
    """As Java writes a double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, power = (whole + fraction).lstrip("0"), len(whole) + int(exponent or 0)
    power -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = digits.rstrip("0") or "0"
    if 1e-3 <= abs(value) < 1e7:
        if power <= 0:
            return f"{sign}0.{'0' * -power}{digits}"
        return f"{sign}{digits[:power].ljust(power, '0')}.{digits[power:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power - 1}"
