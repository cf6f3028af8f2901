"""The methods of each type and the functions of each package: what `value.name(...)` and `math.name(...)` call."""

from __future__ import annotations

import base64
import hashlib
import math
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from firestore_emulator.rules import constraints, text
from firestore_emulator.rules.arithmetic import duration, timestamp
from firestore_emulator.rules.values import (
    LARGEST,
    SMALLEST,
    Constraint,
    Duration,
    Failure,
    LatLng,
    MapDiff,
    Path,
    RulesSet,
    Timestamp,
    Unbound,
    Value,
    is_number,
    strictly_equal,
    type_name,
)

Function = Callable[..., Value]


def _typed(function: Function, *kinds: type | tuple[type, ...]) -> Function:
    """The function, for arguments of these types only."""
    allowed = [frozenset(kind) if isinstance(kind, tuple) else frozenset({kind}) for kind in kinds]
    count = len(allowed)
    first = allowed[0]
    second = allowed[1] if count > 1 else first

    def checked(*values: Value) -> Value:
        # Most calls have one or two arguments, and every condition makes some: no loop for those.
        if (
            len(values) == count
            and type(values[0]) in first
            and (count == 1 or type(values[1]) in second)
            and (count < 3 or all(type(value) in kind for value, kind in zip(values, allowed, strict=True)))
        ):
            return function(*values)
        if len(values) != count:
            raise Failure(f"Incorrect number of arguments. Received: {len(values)}. Expected: {count}.")
        raise Failure(f"Unsupported operation error. Received: {', '.join(map(type_name, values))}.")

    return checked


_NUMBER = (int, float)
_TEXT = (str, bytes)
_LISTS = (list, RulesSet)

# --- lists and sets


def _has(items: list[Value], wanted: Value) -> bool:
    return any(strictly_equal(item, wanted) for item in items)


def _strings(*lists: list[Value]) -> list[frozenset[str]] | None:
    """As sets, if they hold nothing but strings."""
    if all(type(item) is str for items in lists for item in items):
        return [frozenset(items) for items in lists]
    return None


def _has_any(items: list[Value], wanted: list[Value]) -> bool:
    return any(_has(items, one) for one in wanted)


def _has_all(items: list[Value], wanted: list[Value]) -> bool:
    if (found := _strings(items, wanted)) is not None:
        return found[1] <= found[0]
    return all(_has(items, one) for one in wanted)


def _has_only(items: list[Value], wanted: list[Value]) -> bool:
    if (found := _strings(items, wanted)) is not None:
        return found[0] <= found[1]
    return all(_has(wanted, one) for one in items)


def _join(items: list[Value], separator: str) -> str:
    return separator.join(map(text.string_of, items))


def _set_items(other: Value) -> list[Value]:
    items: list[Value] = other.items if type(other) is RulesSet else other
    return items


def _set_has_any(own: RulesSet, other: Value) -> bool:
    return any(item in own for item in _set_items(other))


def _set_has_all(own: RulesSet, other: Value) -> bool:
    return all(item in own for item in _set_items(other))


def _set_has_only(own: RulesSet, other: Value) -> bool:
    wanted = other if type(other) is RulesSet else RulesSet(other)
    return all(item in wanted for item in own.items)


# --- maps


def _keys(own: dict[str, Value]) -> list[Value]:
    return sorted(own)


def _get(own: dict[str, Value], key: Value, default: Value) -> Value:
    if type(key) is str:
        return own.get(key, default)
    found: Value = own
    for step in key:
        if type(step) is not str:
            raise Failure("The steps of get() must be strings.")
        if type(found) is not dict or step not in found:
            return default
        found = found[step]
    return found


# --- paths


def _bind(own: Path, bound: dict[str, Value]) -> Path:
    names = {part.name for part in own.segments if isinstance(part, Unbound)}
    for name in bound:
        if name not in names:
            raise Failure(f"The path has no variable {name}.")
    filled = {name: text.string_of(value) for name, value in bound.items()}
    if not all(filled.values()):
        raise Failure("A segment of a path cannot be empty.")
    return Path(tuple(filled.get(part.name, part) if isinstance(part, Unbound) else part for part in own.segments))


def path_of(source: str) -> Path:
    segments = source.removeprefix("/").split("/")
    if not all(segments):
        raise Failure(f"path() cannot read '{source[:100]}'.")
    return Path(tuple(_path_segment(segment) for segment in segments))


def _path_segment(segment: str) -> str | Unbound:
    if len(segment) > 2 and segment[0] == "{" and segment[-1] == "}":
        return Unbound(segment[1:-1].removesuffix("=**"), segment.endswith("=**}"))
    return segment


# --- times

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400 * 10**9


def _moment(own: Timestamp) -> datetime:
    return _EPOCH + timedelta(microseconds=own.nanos // 1000)


def _date(year: int, month: int, day: int) -> Timestamp:
    try:
        days = (datetime(year, month, day, tzinfo=UTC) - _EPOCH).days
    except (ValueError, OverflowError):
        raise Failure("There is no such date.") from None
    return Timestamp(days * _DAY)


_UNITS = {"w": 7 * _DAY, "d": _DAY, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "ns": 1}


def _duration(amount: int, unit: str) -> Duration:
    if unit not in _UNITS:
        raise Failure(f"'{unit[:20]}' is no unit of time.")
    return duration(amount * _UNITS[unit])


def _toward_zero(nanos: int, unit: int) -> int:
    return abs(nanos) // unit * (1 if nanos >= 0 else -1)


# --- numbers


def _absolute(value: Value) -> Value:
    return value if value == SMALLEST and type(value) is int else abs(value)


def _rounded(value: int | float) -> int:
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return 0
    if math.isinf(value) or abs(value) >= 2.0**63:
        return LARGEST if value > 0 else SMALLEST
    low = math.floor(value)
    return low + (1 if value - low >= 0.5 else 0)


def _upwards(value: Value) -> float:
    return float(value) if not math.isfinite(value) else float(math.ceil(value))


def _downwards(value: Value) -> float:
    return float(value) if not math.isfinite(value) else float(math.floor(value))


def _root(value: Value) -> float:
    return math.nan if value < 0 or math.isnan(value) else math.sqrt(value)


def _power(base: Value, exponent: Value) -> float:
    base, exponent = float(base), float(exponent)
    if exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    is_odd = exponent == math.floor(exponent) and math.isfinite(exponent) and math.fmod(exponent, 2) != 0
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        if base == 0:
            return -math.inf if math.copysign(1, base) < 0 and is_odd else math.inf
        return math.nan


def integer_of(value: Value) -> int:
    if type(value) is str:
        return text.integer_of(value)
    if type(value) is int:
        return int(value)
    if math.isnan(value):
        return 0
    if math.isinf(value) or abs(value) >= 2.0**63:
        return LARGEST if value > 0 else SMALLEST
    return int(value)


def float_of(value: Value) -> float:
    return text.float_of(value) if type(value) is str else float(value)


# --- places

_EARTH_METERS = 6_371_009.0


def _latlng(latitude: Value, longitude: Value) -> LatLng:
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise Failure("A latitude is -90 to 90 and a longitude -180 to 180.")
    return LatLng(float(latitude), float(longitude))


def _distance(own: LatLng, other: LatLng) -> float:
    first, second = math.radians(own.latitude), math.radians(other.latitude)
    across = math.sin(math.radians(other.longitude - own.longitude) / 2)
    along = math.sin((second - first) / 2)
    part = along * along + math.cos(first) * math.cos(second) * across * across
    return 2 * math.asin(math.sqrt(min(1.0, part))) * _EARTH_METERS


# --- hashes


def _bytes(value: Value) -> bytes:
    return text.utf8(value) if type(value) is str else value


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901 - the usual construction
        table.append(byte)
    return table


_CRC32C = _crc32c_table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


METHODS: dict[type, dict[str, Function]] = {
    str: {
        "size": _typed(text.size, str),
        "lower": _typed(text.lower, str),
        "upper": _typed(text.upper, str),
        "trim": _typed(text.trim, str),
        "toUtf8": _typed(text.utf8, str),
        "matches": _typed(text.matches, str, str),
        "split": _typed(text.split, str, str),
        "replace": _typed(text.replace, str, str, str),
    },
    bytes: {
        "size": _typed(len, bytes),
        "toHexString": _typed(lambda own: own.hex().upper(), bytes),
        "toBase64": _typed(lambda own: base64.urlsafe_b64encode(own).decode(), bytes),
    },
    list: {
        "size": _typed(len, list),
        "hasAny": _typed(_has_any, list, list),
        "hasAll": _typed(_has_all, list, list),
        "hasOnly": _typed(_has_only, list, list),
        "join": _typed(_join, list, str),
        "concat": _typed(lambda own, other: own + other, list, list),
        "removeAll": _typed(lambda own, other: [one for one in own if not _has(other, one)], list, list),
        "toSet": _typed(RulesSet, list),
    },
    RulesSet: {
        "size": _typed(len, RulesSet),
        "hasAny": _typed(_set_has_any, RulesSet, _LISTS),
        "hasAll": _typed(_set_has_all, RulesSet, _LISTS),
        "hasOnly": _typed(_set_has_only, RulesSet, _LISTS),
        "union": _typed(lambda own, other: RulesSet([*own.items, *other.items]), RulesSet, RulesSet),
        "intersection": _typed(
            lambda own, other: RulesSet(one for one in own.items if one in other), RulesSet, RulesSet
        ),
        "difference": _typed(
            lambda own, other: RulesSet(one for one in own.items if one not in other), RulesSet, RulesSet
        ),
    },
    dict: {
        "size": _typed(len, dict),
        "keys": _typed(_keys, dict),
        "values": _typed(lambda own: list(own.values()), dict),
        "get": lambda own, *given: _typed(_get, dict, (str, list), type(given[-1]) if given else dict)(own, *given),
        "diff": _typed(MapDiff, dict, dict),
    },
    MapDiff: {
        "addedKeys": _typed(lambda own: RulesSet(own.added()), MapDiff),
        "removedKeys": _typed(lambda own: RulesSet(own.removed()), MapDiff),
        "changedKeys": _typed(lambda own: RulesSet(own.changed()), MapDiff),
        "unchangedKeys": _typed(lambda own: RulesSet(own.unchanged()), MapDiff),
        "affectedKeys": _typed(lambda own: RulesSet(own.affected()), MapDiff),
    },
    Path: {"bind": _typed(_bind, Path, dict)},
    Timestamp: {
        "year": _typed(lambda own: _moment(own).year, Timestamp),
        "month": _typed(lambda own: _moment(own).month, Timestamp),
        "day": _typed(lambda own: _moment(own).day, Timestamp),
        "hours": _typed(lambda own: _moment(own).hour, Timestamp),
        "minutes": _typed(lambda own: _moment(own).minute, Timestamp),
        "seconds": _typed(lambda own: _moment(own).second, Timestamp),
        "nanos": _typed(lambda own: own.nanos % 10**9, Timestamp),
        "dayOfWeek": _typed(lambda own: _moment(own).isoweekday(), Timestamp),
        "dayOfYear": _typed(lambda own: _moment(own).timetuple().tm_yday, Timestamp),
        "toMillis": _typed(lambda own: own.nanos // 10**6, Timestamp),
        "date": _typed(lambda own: Timestamp(own.nanos // _DAY * _DAY), Timestamp),
        "time": _typed(lambda own: Duration(own.nanos % _DAY), Timestamp),
    },
    Duration: {
        "seconds": _typed(lambda own: _toward_zero(own.nanos, 10**9), Duration),
        "nanos": _typed(lambda own: int(math.copysign(abs(own.nanos) % 10**9, own.nanos)), Duration),
    },
    LatLng: {
        "latitude": _typed(lambda own: own.latitude, LatLng),
        "longitude": _typed(lambda own: own.longitude, LatLng),
        "distance": _typed(_distance, LatLng, LatLng),
    },
    Constraint: {"hasAny": _typed(constraints.has_any, Constraint, list)},
}

PACKAGES: dict[str, dict[str, Function]] = {
    "math": {
        "abs": _typed(_absolute, _NUMBER),
        "ceil": _typed(_upwards, _NUMBER),
        "floor": _typed(_downwards, _NUMBER),
        "round": _typed(_rounded, _NUMBER),
        "sqrt": _typed(_root, _NUMBER),
        "pow": _typed(_power, _NUMBER, _NUMBER),
        "isNaN": _typed(lambda value: type(value) is float and math.isnan(value), _NUMBER),
    },
    "timestamp": {
        "date": _typed(_date, int, int, int),
        "value": _typed(lambda millis: timestamp(millis * 10**6), int),
    },
    "duration": {
        "value": _typed(_duration, int, str),
        "time": _typed(
            lambda hours, minutes, seconds, nanos: duration(((hours * 60 + minutes) * 60 + seconds) * 10**9 + nanos),
            int,
            int,
            int,
            int,
        ),
        "abs": _typed(lambda value: Duration(abs(value.nanos)), Duration),
    },
    "latlng": {"value": _typed(_latlng, _NUMBER, _NUMBER)},
    "hashing": {
        "md5": _typed(lambda data: hashlib.md5(_bytes(data), usedforsecurity=False).digest(), _TEXT),
        "sha256": _typed(lambda data: hashlib.sha256(_bytes(data)).digest(), _TEXT),
        "crc32": _typed(lambda data: zlib.crc32(_bytes(data)).to_bytes(4, "little"), _TEXT),
        "crc32c": _typed(lambda data: _crc32c(_bytes(data)).to_bytes(4, "little"), _TEXT),
    },
}

FUNCTIONS: dict[str, Function] = {
    "int": _typed(integer_of, (int, float, str)),
    "float": _typed(float_of, (int, float, str)),
    "string": lambda *given: _one_argument(text.string_of, given),
    "path": _typed(path_of, str),
    "debug": lambda *given: _one_argument(lambda value: value, given),
}


def _one_argument(function: Function, given: tuple[Value, ...]) -> Value:
    if len(given) != 1:
        raise Failure(f"Incorrect number of arguments. Received: {len(given)}. Expected: 1.")
    return function(given[0])


def call_method(target: Value, name: str, arguments: list[Value]) -> Value:
    try:
        method = METHODS[type(target)][name]
    except KeyError:
        raise Failure(f"Function not found error: Name: [{name}].") from None
    return method(target, *arguments)


assert not is_number(True), "a bool is no number"
