"""The functions of each package (`math.name(...)`) and those without one (`int(...)`)."""

from __future__ import annotations

from firestore_emulator.rules import containers, hashing, numbers, text, times
from firestore_emulator.rules.arithmetic import timestamp
from firestore_emulator.rules.signatures import ANY, Function, typed
from firestore_emulator.rules.values import Duration

_NUMBER = (int, float)
_TEXT = (str, bytes)

PACKAGES: dict[str, dict[str, Function]] = {
    "math": {
        "abs": typed(numbers.absolute, _NUMBER),
        "ceil": typed(numbers.upwards, _NUMBER),
        "floor": typed(numbers.downwards, _NUMBER),
        "round": typed(numbers.rounded, _NUMBER),
        "sqrt": typed(numbers.root, _NUMBER),
        "pow": typed(numbers.power, _NUMBER, _NUMBER),
        "isNaN": typed(numbers.is_nan, _NUMBER),
    },
    "timestamp": {
        "date": typed(times.date_of, int, int, int),
        "value": typed(lambda millis: timestamp(millis * 10**6), int),
    },
    "duration": {
        "value": typed(times.duration_of, int, str),
        "time": typed(times.time_of, int, int, int, int),
        "abs": typed(lambda value: Duration(abs(value.nanos)), Duration),
    },
    "latlng": {"value": typed(numbers.latlng_of, _NUMBER, _NUMBER)},
    "hashing": {
        "md5": typed(hashing.md5, _TEXT),
        "sha256": typed(hashing.sha256, _TEXT),
        "crc32": typed(hashing.crc32, _TEXT),
        "crc32c": typed(hashing.crc32c, _TEXT),
    },
}

FUNCTIONS: dict[str, Function] = {
    "int": typed(numbers.integer_of, (int, float, str)),
    "float": typed(numbers.float_of, (int, float, str)),
    "string": typed(text.string_of, ANY),
    "path": typed(containers.path_of, str),
    "debug": typed(lambda value: value, ANY),
}
