"""The methods of each type: what `value.name(...)` calls."""

from __future__ import annotations

import base64

from firestore_emulator.rules import constraints, containers, numbers, text, times
from firestore_emulator.rules.signatures import ANY, Function, typed
from firestore_emulator.rules.values import Constraint, Duration, LatLng, MapDiff, Path, RulesSet, Timestamp

_LISTS = (list, RulesSet)

METHODS: dict[type, dict[str, Function]] = {
    str: {
        "size": typed(text.size, str),
        "lower": typed(text.lower, str),
        "upper": typed(text.upper, str),
        "trim": typed(text.trim, str),
        "toUtf8": typed(text.utf8, str),
        "matches": typed(text.matches, str, str),
        "split": typed(text.split, str, str),
        "replace": typed(text.replace, str, str, str),
    },
    bytes: {
        "size": typed(len, bytes),
        "toHexString": typed(lambda own: own.hex().upper(), bytes),
        "toBase64": typed(lambda own: base64.urlsafe_b64encode(own).decode(), bytes),
    },
    list: {
        "size": typed(len, list),
        "hasAny": typed(containers.has_any, list, list),
        "hasAll": typed(containers.has_all, list, list),
        "hasOnly": typed(containers.has_only, list, list),
        "join": typed(containers.join, list, str),
        "concat": typed(lambda own, other: own + other, list, list),
        "removeAll": typed(containers.remove_all, list, list),
        "toSet": typed(RulesSet, list),
    },
    RulesSet: {
        "size": typed(len, RulesSet),
        "hasAny": typed(containers.set_has_any, RulesSet, _LISTS),
        "hasAll": typed(containers.set_has_all, RulesSet, _LISTS),
        "hasOnly": typed(containers.set_has_only, RulesSet, _LISTS),
        "union": typed(containers.union, RulesSet, RulesSet),
        "intersection": typed(containers.intersection, RulesSet, RulesSet),
        "difference": typed(containers.difference, RulesSet, RulesSet),
    },
    dict: {
        "size": typed(len, dict),
        "keys": typed(sorted, dict),
        "values": typed(lambda own: list(own.values()), dict),
        "get": typed(containers.get, dict, (str, list), ANY),
        "diff": typed(MapDiff, dict, dict),
    },
    MapDiff: {
        "addedKeys": typed(lambda own: RulesSet(own.added()), MapDiff),
        "removedKeys": typed(lambda own: RulesSet(own.removed()), MapDiff),
        "changedKeys": typed(lambda own: RulesSet(own.changed()), MapDiff),
        "unchangedKeys": typed(lambda own: RulesSet(own.unchanged()), MapDiff),
        "affectedKeys": typed(lambda own: RulesSet(own.affected()), MapDiff),
    },
    Path: {"bind": typed(containers.bind, Path, dict)},
    Timestamp: {
        "year": typed(lambda own: times.moment(own).year, Timestamp),
        "month": typed(lambda own: times.moment(own).month, Timestamp),
        "day": typed(lambda own: times.moment(own).day, Timestamp),
        "hours": typed(lambda own: times.moment(own).hour, Timestamp),
        "minutes": typed(lambda own: times.moment(own).minute, Timestamp),
        "seconds": typed(lambda own: times.moment(own).second, Timestamp),
        "nanos": typed(lambda own: own.nanos % 10**9, Timestamp),
        "dayOfWeek": typed(lambda own: times.moment(own).isoweekday(), Timestamp),
        "dayOfYear": typed(lambda own: times.moment(own).timetuple().tm_yday, Timestamp),
        "toMillis": typed(lambda own: own.nanos // 10**6, Timestamp),
        "date": typed(lambda own: Timestamp(own.nanos // times.DAY * times.DAY), Timestamp),
        "time": typed(lambda own: Duration(own.nanos % times.DAY), Timestamp),
    },
    Duration: {
        "seconds": typed(times.whole_seconds, Duration),
        "nanos": typed(times.remaining_nanos, Duration),
    },
    LatLng: {
        "latitude": typed(lambda own: own.latitude, LatLng),
        "longitude": typed(lambda own: own.longitude, LatLng),
        "distance": typed(numbers.distance, LatLng, LatLng),
    },
    Constraint: {"hasAny": typed(constraints.has_any, Constraint, list)},
}
