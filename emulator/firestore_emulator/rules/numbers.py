"""What `math`, `int()`, `float()` and `latlng` compute, with Java's treatment of infinities and NaN."""

from __future__ import annotations

import math

from firestore_emulator.rules import text
from firestore_emulator.rules.values import LARGEST, SMALLEST, Failure, LatLng, Value

_EARTH_METERS = 6_371_009.0
"""The mean radius with which Google's emulator computes distances."""


def absolute(value: Value) -> Value:
    return value if value == SMALLEST and type(value) is int else abs(value)


def rounded(value: int | float) -> int:
    """To the nearest integer; a half rounds up. An integer becomes a float first, and loses what that cannot hold."""
    value = float(value)
    if not _fits(value):
        return _nearest(value)
    low = math.floor(value)
    return low + (1 if value - low >= 0.5 else 0)


def upwards(value: Value) -> float:
    return float(value) if not math.isfinite(value) else float(math.ceil(value))


def downwards(value: Value) -> float:
    return float(value) if not math.isfinite(value) else float(math.floor(value))


def root(value: Value) -> float:
    return math.nan if value < 0 or math.isnan(value) else math.sqrt(value)


def power(base: Value, exponent: Value) -> float:
    base, exponent = float(base), float(exponent)
    if exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    is_odd = math.isfinite(exponent) and exponent == math.floor(exponent) and math.fmod(exponent, 2) != 0
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        if base == 0:
            return -math.inf if math.copysign(1, base) < 0 and is_odd else math.inf
        return math.nan


def is_nan(value: Value) -> bool:
    return type(value) is float and math.isnan(value)


def integer_of(value: Value) -> int:
    """`int()`: a float is cut toward zero."""
    if type(value) is str:
        return text.integer_of(value)
    if type(value) is int:
        return int(value)
    return int(value) if _fits(value) else _nearest(value)


def _fits(value: float) -> bool:
    return math.isfinite(value) and abs(value) < 2.0**63


def _nearest(value: float) -> int:
    """The integer of 64 bits that is nearest to a float outside their range; 0 for NaN."""
    return 0 if math.isnan(value) else LARGEST if value > 0 else SMALLEST


def float_of(value: Value) -> float:
    return text.float_of(value) if type(value) is str else float(value)


# --- places


def latlng_of(latitude: Value, longitude: Value) -> LatLng:
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise Failure("A latitude is -90 to 90 and a longitude -180 to 180.")
    return LatLng(float(latitude), float(longitude))


def distance(own: LatLng, other: LatLng) -> float:
    """In meters, over a sphere."""
    first, second = math.radians(own.latitude), math.radians(other.latitude)
    across = math.sin(math.radians(other.longitude - own.longitude) / 2)
    along = math.sin((second - first) / 2)
    part = along * along + math.cos(first) * math.cos(second) * across * across
    return 2 * math.asin(math.sqrt(min(1.0, part))) * _EARTH_METERS
