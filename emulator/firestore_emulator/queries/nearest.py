"""Vector search: of the documents that a query finds, those whose vectors lie nearest, looked at one by one."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, get_field, parse_field_path, set_field
from firestore_emulator.documents.protos import Document, Proto, StructuredQuery, Value
from firestore_emulator.rpc.errors import invalid_argument

MOST_NEIGHBOURS = 1_000
MOST_DIMENSIONS = 2_048


class Measure(Enum):
    EUCLIDEAN = "EUCLIDEAN"
    COSINE = "COSINE"
    DOT_PRODUCT = "DOT_PRODUCT"
    """The larger the nearer."""


@dataclass(frozen=True, slots=True)
class Nearest:
    path: FieldPath
    vector: tuple[float, ...]
    measure: Measure
    limit: int
    result_path: FieldPath | None
    """Where the distance is shown; None: nowhere."""
    threshold: float | None
    """The largest distance that counts; of dot products, the smallest."""

    def found_in(self, documents: Iterable[Proto]) -> list[Proto]:
        """The nearest first; of two at one distance, the one that came first."""
        measured = []
        for number, document in enumerate(documents):
            vector = vector_of(get_field(document.fields, self.path))
            if vector is None or len(vector) != len(self.vector):
                continue
            distance = self._distance(vector)
            if self._counts(distance):
                rank = -distance if self.measure is Measure.DOT_PRODUCT else distance
                measured.append((math.isnan(distance), rank, number, distance, document))
        nearest = heapq.nsmallest(self.limit, measured, key=lambda one: (one[0], 0.0 if one[0] else one[1], one[2]))
        return [self._shown(document, distance) for _, _, _, distance, document in nearest]

    def _distance(self, vector: Sequence[float]) -> float:
        """NaN where there is none, as of a vector of no length in a measure of angles; those come last.

        Sums are rounded step by step and lengths multiplied before the root, as in Google's emulator, so that vectors
        that tie there tie here.
        """
        match self.measure:
            case Measure.EUCLIDEAN:
                differences = [one - other for one, other in zip(self.vector, vector, strict=True)]
                return math.sqrt(_product(differences, differences))
            case Measure.DOT_PRODUCT:
                return _product(self.vector, vector)
        lengths = math.sqrt(_product(self.vector, self.vector) * _product(vector, vector))
        if not lengths or not math.isfinite(lengths):
            return math.nan
        return 1.0 - _product(self.vector, vector) / lengths

    def _counts(self, distance: float) -> bool:
        if self.threshold is None:
            return True
        return distance >= self.threshold if self.measure is Measure.DOT_PRODUCT else distance <= self.threshold

    def _shown(self, document: Proto, distance: float) -> Proto:
        if self.result_path is None:
            return document
        shown = Document()
        shown.CopyFrom(document)
        set_field(shown.fields, self.result_path, Value(double_value=distance))
        return shown


def vector_of(value: Proto | None) -> tuple[float, ...] | None:
    if value is None or value.WhichOneof("value_type") != "map_value" or not keys.is_vector(value.map_value.fields):
        return None
    return tuple(item.double_value for item in value.map_value.fields["value"].array_value.values)


def parse_nearest(query: Proto) -> Nearest | None:
    if not query.HasField("find_nearest"):
        return None
    asked = query.find_nearest
    vector = vector_of(asked.query_vector)
    if vector is None:
        raise invalid_argument("Query Value must be of type vector.")
    elements = asked.query_vector.map_value.fields["value"].array_value.values
    if any(item.WhichOneof("value_type") != "double_value" for item in elements):
        raise invalid_argument("Vector must only contain values of type 'double'")
    if not vector:
        raise invalid_argument("Cannot have a zero length vector.")
    if len(vector) > MOST_DIMENSIONS:
        raise invalid_argument(f"Vectors must be at most {MOST_DIMENSIONS} dimensions.")
    limit = asked.limit.value
    if not 1 <= limit <= MOST_NEIGHBOURS:
        raise invalid_argument(f"FindNearest.limit must be a positive integer of no more than {MOST_NEIGHBOURS}")
    for part, called in (("limit", "A query limit"), ("start_at", "A cursor"), ("end_at", "A cursor")):
        if query.HasField(part):
            raise invalid_argument(f"{called} cannot be used with FindNearest")
    if query.offset:
        raise invalid_argument("A query offset cannot be used with FindNearest")
    if asked.HasField("distance_threshold") and not math.isfinite(asked.distance_threshold.value):
        raise invalid_argument("distanceThreshold must be a finite number.")
    result = parse_field_path(asked.distance_result_field) if asked.distance_result_field else None
    if result == NAME_PATH:
        raise invalid_argument('The distanceResultField.property.name "__name__" is reserved.')
    return Nearest(
        path=parse_field_path(asked.vector_field.field_path),
        vector=vector,
        measure=_measure(asked.distance_measure),
        limit=limit,
        result_path=result,
        threshold=asked.distance_threshold.value if asked.HasField("distance_threshold") else None,
    )


def _measure(number: int) -> Measure:
    names = {value: name for name, value in StructuredQuery.FindNearest.DistanceMeasure.items()}
    try:
        return Measure(names.get(number, ""))
    except ValueError:
        raise invalid_argument("Unknown Distance Measure.") from None


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    total = 0.0
    for left, right in zip(one, other, strict=True):  # not sum(), which compensates for rounding from Python 3.12 on
        total += left * right
    return total
