"""Counters and gauges (OpenTelemetry), shown as Prometheus text. One wrapper: the rest of the program calls these.

functions-framework imports the program and then forks. OpenTelemetry starts threads in the new process, with a lock
that Python's thread pools hold during a fork and let go in the order in which they were imported: they must come first.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - see above
from collections.abc import Callable, Iterable, Mapping

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# A registry of our own: several systems may live in one process, as in tests.
_registry = CollectorRegistry()
_reader = PrometheusMetricReader(disable_target_info=True)
_registry.register(_reader._collector)
_provider = MeterProvider(metric_readers=[_reader], resource=Resource.get_empty())
_meter = _provider.get_meter("outbox")


class _Counter:
    """A sum for each value of its labels. Plain numbers, read when the metrics are asked for: OpenTelemetry's own
    counter costs more than the work that most of these count."""

    def __init__(self, name: str, description: str, labels: str = "", unit: str = "") -> None:
        """`labels`: their names, with commas between them."""
        self._labels = labels.split(",") if labels else []
        self._sums: dict[tuple[str, ...], float] = {}
        _meter.create_observable_counter(name, [self._observe], unit=unit, description=description)

    def add(self, amount: float, *values: str) -> None:
        self._sums[values] = self._sums.get(values, 0) + amount

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        for values, amount in self._sums.items():
            yield Observation(amount, dict(zip(self._labels, values, strict=True)))


_attempts = _Counter("outbox_attempts", "Attempts that ended, by what became of them", "became")
_throttles = _Counter("outbox_throttles", "Throttles by provider, by scope", "scope")
_lane_failures = _Counter("outbox_lane_failures", "Turns whose handler raised an error, by kind of lane", "kind")
_handler_runs = _Counter("outbox_handler_runs", "Runs of your handlers, by kind and outcome", "kind,became")
_events_refused = _Counter("outbox_events_refused", "Events by HTTP that were refused, by what was wrong", "why")
_limit_waits = _Counter("outbox_limit_waits_seconds", "Time that calls waited for a shared limit", "limit", unit="s")
_limit_throttles = _Counter("outbox_limit_throttles", "429 answers to calls under a shared limit", "limit")
_short_turns = _Counter("outbox_short_turns", "Events of new messages, by what became of the short turn", "became")
_leases_lost = _Counter("outbox_leases_lost", "Lanes lost to another holder")
_sweep_finds = _Counter("outbox_sweep_finds", "What the sweep had to wake, by kind", "kind")
_sweep_failures = _Counter("outbox_sweep_failures", "Errors in the sweep, by step", "step")
_firestore = _Counter("outbox_firestore_operations", "Documents read and written, as they are billed", "kind")
_receipts = _Counter("outbox_receipts", "Receipts, by what became of them", "changed")
_webhook_events = _Counter("outbox_webhook_events", "What else webhooks told, by kind", "kind")
_webhooks = _Counter("outbox_webhooks", "Webhooks, by how they were answered", "answer")
_pace_waits = _Counter("outbox_pace_waits_seconds", "Time spent waiting for pace", unit="s")
_queue_age = _meter.create_histogram(
    "outbox_queue_age_seconds",
    unit="s",
    description="From due to claimed, for each message claimed",
    explicit_bucket_boundaries_advisory=[0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600],
)


def _handler_times(name: str, description: str) -> Histogram:
    return _meter.create_histogram(
        name,
        unit="s",
        description=description,
        explicit_bucket_boundaries_advisory=[0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 300, 900],
    )


_handler_ready = _handler_times("outbox_handler_ready_seconds", "From the first event to the end of the debounce")
_handler_wait = _handler_times("outbox_handler_wait_seconds", "From the end of the debounce to the start of the run")
_handler_duration = _handler_times("outbox_handler_seconds", "How long runs of your handlers took")


_longest_gap = 0.0
"""In seconds."""


def visibility_gap(seconds: float) -> None:
    """The gauge keeps the longest: whether the overlap of pages is long enough is all that it is for."""
    global _longest_gap
    _longest_gap = max(_longest_gap, seconds)


def _observe_gap(_: CallbackOptions) -> Iterable[Observation]:
    return [Observation(_longest_gap)]


_meter.create_observable_gauge(
    "outbox_visibility_gap_seconds",
    [_observe_gap],
    unit="s",
    description="The longest time from a document's server timestamp until it was visible, since this process began",
)


def attempt(became: str) -> None:
    _attempts.add(1, became)


def throttle(scope: str) -> None:
    _throttles.add(1, scope)


def lane_failure(kind: str) -> None:
    _lane_failures.add(1, kind)


def handler_run(kind: str, became: str) -> None:
    _handler_runs.add(1, kind, became)


def handler_began(kind: str, *, ready_seconds: float | None, wait_seconds: float | None) -> None:
    """None: not known, because the lane was taken over or goes for another round."""
    if ready_seconds is not None:
        _handler_ready.record(max(0.0, ready_seconds), {"kind": kind})
    if wait_seconds is not None:
        _handler_wait.record(max(0.0, wait_seconds), {"kind": kind})


def handler_ended(kind: str, seconds: float) -> None:
    _handler_duration.record(max(0.0, seconds), {"kind": kind})


def event_refused(why: str) -> None:
    _events_refused.add(1, why)


def limit_wait(name: str, seconds: float) -> None:
    _limit_waits.add(max(0.0, seconds), name)


def limit_throttled(name: str) -> None:
    _limit_throttles.add(1, name)


_limit_rates: dict[str, float] = {}


def limit_rate(name: str, per_second: float) -> None:
    _limit_rates[name] = per_second


_meter.create_observable_gauge(
    "outbox_limit_rate",
    [lambda _: [Observation(rate, {"limit": name}) for name, rate in _limit_rates.items()]],
    description="Calls a second that a shared limit allows now, all instances together",
)


def short_turn(became: str) -> None:
    _short_turns.add(1, became)


_sessions: dict[tuple[str, str], int] = {}


def sessions(shard: str, by_state: Mapping[str, int]) -> None:
    """A shard of a hot set, as this process last read or wrote it."""
    _sessions.update({(shard, state): count for state, count in by_state.items()})


_meter.create_observable_gauge(
    "outbox_sessions",
    [lambda _: [Observation(count, {"set": of, "state": state}) for (of, state), count in _sessions.items()]],
    description="Accounts with a session in a shard of the hot set, by state, and those that wait for a slot",
)


def lease_lost() -> None:
    _leases_lost.add(1)


def sweep_find(kind: str, count: int) -> None:
    if count:
        _sweep_finds.add(count, kind)


def sweep_failure(step: str) -> None:
    _sweep_failures.add(1, step)


def firestore(kind: str, count: int) -> None:
    _firestore.add(count, kind)


def receipt(changed: str, count: int = 1) -> None:
    _receipts.add(count, changed)


def webhook_event(kind: str, count: int = 1) -> None:
    _webhook_events.add(count, kind)


def webhook(answer: str) -> None:
    _webhooks.add(1, answer)


def pace_wait(seconds: float) -> None:
    _pace_waits.add(max(0.0, seconds))


def queue_age(seconds: float) -> None:
    _queue_age.record(max(0.0, seconds))


def watch_lanes(held: Callable[[], int], waiting: Callable[[], int]) -> None:
    """Gauges of this worker's own lanes."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(held(), {"state": "held"}), Observation(waiting(), {"state": "waiting"})]

    _meter.create_observable_gauge("outbox_lanes", [observe], description="Lanes in this worker, by state")


def as_text() -> bytes:
    return generate_latest(_registry)
