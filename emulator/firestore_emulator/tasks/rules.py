"""What a queue and a task may say: checked, put in canonical form, and refused in production's words.

Zero means "not set" in a queue's numbers, as it does on the wire, and is replaced by production's default.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from firestore_emulator.rpc.errors import invalid_argument, unimplemented
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import protos
from firestore_emulator.tasks.pacing import Limits, burst_for
from firestore_emulator.tasks.retry import UNLIMITED, Policy
from firestore_emulator.tasks.times import duration_of, from_us, set_duration, timestamp_us

DEFAULT_PER_SECOND = 500.0
DEFAULT_CONCURRENT = 1000
DEFAULT_ATTEMPTS = 100
DEFAULT_MIN_BACKOFF = timedelta(milliseconds=100)
DEFAULT_MAX_BACKOFF = timedelta(hours=1)
DEFAULT_DOUBLINGS = 16
DEFAULT_DEADLINE = timedelta(minutes=10)

MAX_PER_SECOND = 500.0
MAX_CONCURRENT = 5000
MIN_DEADLINE = timedelta(seconds=15)
MAX_DEADLINE = timedelta(minutes=30)
MAX_AHEAD = timedelta(days=30)
MAX_URL_CHARACTERS = 2083
MAX_HEADER_BYTES = 80 * 1024
MAX_TASK_BYTES = 1024 * 1024 - 7
"""Of the stored task as a protobuf: where production draws the line, measured by others to the byte."""

USER_AGENT = "Google-Cloud-Tasks"
_OWN_HEADERS = frozenset({"host", "content-length", "user-agent"})
_OWN_PREFIXES = ("x-cloudtasks-", "x-google-", "x-appengine-")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BODY_METHODS = frozenset({1, 4, 6})  # POST, PUT, PATCH

_ZONE_OF_MESSAGES = ZoneInfo("America/Los_Angeles")  # production tells schedule times in its own zone

# --- queues ---

_READ_ONLY_PATHS = frozenset({"name", "state", "purge_time", "rate_limits.max_burst_size"})
_PATHS = frozenset(
    {
        "rate_limits",
        "rate_limits.max_dispatches_per_second",
        "rate_limits.max_concurrent_dispatches",
        "retry_config",
        "retry_config.max_attempts",
        "retry_config.max_retry_duration",
        "retry_config.min_backoff",
        "retry_config.max_backoff",
        "retry_config.max_doublings",
        "stackdriver_logging_config",
        "stackdriver_logging_config.sampling_ratio",
    }
)


def canonical_queue(given: Message) -> Message:
    """A copy with the defaults filled in and the output-only fields as they are for a new queue."""
    for field in ("app_engine_routing_override", "http_target"):
        if given.HasField(field):
            raise unimplemented(f"Queue.{field} is not supported by this emulator.")
    queue = protos.Queue(name=given.name, state=protos.RUNNING)
    queue.rate_limits.CopyFrom(given.rate_limits)
    _complete_rate_limits(queue.rate_limits)
    queue.retry_config.CopyFrom(given.retry_config)
    complete_retry_config(queue.retry_config)
    if given.HasField("stackdriver_logging_config"):
        ratio = given.stackdriver_logging_config.sampling_ratio
        if not 0 <= ratio <= 1:
            raise invalid_argument("StackdriverLoggingConfig.samplingRatio must be between 0.0 and 1.0.")
        queue.stackdriver_logging_config.sampling_ratio = ratio
    return queue


def updated_queue(current: Message, given: Message, paths: list[str]) -> Message:
    """`current` with the masked fields of `given`; with no mask, all of them. State and purge time stay."""
    if paths:
        merged = protos.Queue()
        merged.CopyFrom(current)
        for path in paths:
            _copy_path(merged, given, path)
    else:
        merged = given
    queue = canonical_queue(merged)
    queue.name, queue.state = current.name, current.state
    if current.HasField("purge_time"):
        queue.purge_time.CopyFrom(current.purge_time)
    return queue


def _copy_path(target: Message, source: Message, path: str) -> None:
    root, _, leaf = path.partition(".")
    if root in ("app_engine_routing_override", "http_target"):
        raise unimplemented(f"Queue.{root} is not supported by this emulator.")
    if path in _READ_ONLY_PATHS:
        return
    if path not in _PATHS:
        raise invalid_argument(f"Invalid field mask: Queue has no field {path!r}.")
    field = leaf or root
    if leaf:
        target, source = getattr(target, root), getattr(source, root)
    value = getattr(source, field)
    if isinstance(value, int | float):
        setattr(target, field, value)
    elif source.HasField(field):
        getattr(target, field).CopyFrom(value)
    else:
        target.ClearField(field)


def _complete_rate_limits(limits: Message) -> None:
    rate = limits.max_dispatches_per_second
    if rate < 0 or math.isnan(rate):
        raise invalid_argument("RateLimits.maxDispatchesPerSecond cannot be negative.")
    if rate > MAX_PER_SECOND:
        raise invalid_argument("RateLimits.maxDispatchesPerSecond must be less than or equal to 500.")
    if limits.max_concurrent_dispatches < 0:
        raise invalid_argument("RateLimits.maxConcurrentDispatches cannot be negative.")
    if limits.max_concurrent_dispatches > MAX_CONCURRENT:
        raise invalid_argument("RateLimits.maxConcurrentDispatches must be less than or equal to 5000.")
    limits.max_dispatches_per_second = rate or DEFAULT_PER_SECOND
    limits.max_concurrent_dispatches = limits.max_concurrent_dispatches or DEFAULT_CONCURRENT
    limits.max_burst_size = burst_for(limits.max_dispatches_per_second)


def complete_retry_config(config: Message) -> None:
    if config.max_attempts < UNLIMITED:
        raise invalid_argument("RetryConfig.maxAttempts must be greater or equal to -1.")
    if config.max_doublings < 0:
        raise invalid_argument("RetryConfig.maxDoublings cannot be negative.")
    _duration(config.max_retry_duration, "maxRetryDuration")
    least = _duration(config.min_backoff, "minBackoff") or DEFAULT_MIN_BACKOFF
    most = _duration(config.max_backoff, "maxBackoff") or DEFAULT_MAX_BACKOFF
    if least > most:
        raise invalid_argument("RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.")
    config.max_attempts = config.max_attempts or DEFAULT_ATTEMPTS
    config.max_doublings = config.max_doublings or DEFAULT_DOUBLINGS
    set_duration(config.min_backoff, least)
    set_duration(config.max_backoff, most)


def _duration(message: Message, field: str) -> timedelta:
    duration = duration_of(message)
    if duration is None:
        raise invalid_argument(f"RetryConfig.{field} is not a valid duration.")
    if duration < timedelta(0):
        raise invalid_argument(f"RetryConfig.{field} cannot be negative.")
    return duration


def limits_of(queue: Message) -> Limits:
    limits = queue.rate_limits
    return Limits(
        per_second=limits.max_dispatches_per_second,
        burst=limits.max_burst_size,
        concurrent=limits.max_concurrent_dispatches,
    )


def policy_of(config: Message) -> Policy:
    return Policy(
        max_attempts=config.max_attempts,
        max_retry_duration=duration_of(config.max_retry_duration) or timedelta(0),
        min_backoff=duration_of(config.min_backoff) or DEFAULT_MIN_BACKOFF,
        max_backoff=duration_of(config.max_backoff) or DEFAULT_MAX_BACKOFF,
        max_doublings=config.max_doublings,
    )


# --- tasks ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedTask:
    """What a create request asks for, checked; the caller gives the name."""

    request: Message
    """HttpRequest in the form in which it is stored and shown."""
    schedule_us: int
    deadline: timedelta
    retry_config: Message | None
    """Complete, when the task has one of its own."""


def accepted_task(given: Message, now_us: int) -> AcceptedTask:
    kind = given.WhichOneof("message_type")
    if kind == "app_engine_http_request":
        raise unimplemented(
            "App Engine tasks (Task.app_engine_http_request) are not supported by this emulator; use Task.http_request."
        )
    if kind is None:
        raise invalid_argument("Task.message_type is not set.")
    retry_config = None
    if given.HasField("retry_config"):
        retry_config = protos.RetryConfig()
        retry_config.CopyFrom(given.retry_config)
        complete_retry_config(retry_config)
    return AcceptedTask(
        request=_canonical_request(given.http_request),
        schedule_us=_schedule_us(given, now_us),
        deadline=_deadline(given),
        retry_config=retry_config,
    )


def _canonical_request(given: Message) -> Message:
    _check_url(given.url)
    method = given.http_method or protos.POST
    if method not in protos.METHODS:
        raise invalid_argument(f"HttpRequest.http_method {method} is not a known HTTP method.")
    if given.body and method not in _BODY_METHODS:
        raise invalid_argument(
            f"HttpRequest.body is not allowed with the method {protos.METHODS[method]}; use POST, PUT or PATCH."
        )
    authorization = given.WhichOneof("authorization_header")
    if authorization is not None and not getattr(given, authorization).service_account_email:
        raise invalid_argument(f"HttpRequest.{authorization}.service_account_email is required.")
    request = protos.HttpRequest()
    request.CopyFrom(given)
    request.http_method = method
    size = 0
    for name, value in given.headers.items():
        size += len(name) + len(value)
        low = name.lower()
        if _HEADER_NAME.fullmatch(name) is None or any(c in value for c in "\r\n\0"):
            raise invalid_argument(f"HttpRequest.headers has an invalid header: {name[:100]!r}.")
        if low in _OWN_HEADERS or low.startswith(_OWN_PREFIXES) or (authorization and low == "authorization"):
            del request.headers[name]
    if size > MAX_HEADER_BYTES:
        raise invalid_argument("The size of HttpRequest.headers must be less than 80KB.")
    request.headers["User-Agent"] = USER_AGENT
    return request


def _check_url(url: str) -> None:
    if not url:
        raise invalid_argument("HttpRequest.url is required.")
    if not url.lower().startswith(("http://", "https://")):
        raise invalid_argument("HttpTarget.url must start with 'http://' or 'https://'.")
    if len(url) > MAX_URL_CHARACTERS:
        raise invalid_argument(f"HttpRequest.url must be at most {MAX_URL_CHARACTERS} characters.")
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise invalid_argument("HttpRequest.url has no valid host.")


def _schedule_us(given: Message, now_us: int) -> int:
    if not given.HasField("schedule_time"):
        return now_us
    asked_us = timestamp_us(given.schedule_time)
    if asked_us is None:
        raise invalid_argument("Task.scheduleTime is not a valid timestamp.")
    if asked_us - now_us > MAX_AHEAD // timedelta(microseconds=1):
        raise invalid_argument(
            f"The Task.scheduleTime, {_told(asked_us)}, is too far in the future. "
            "Schedule time must be no more than 720h in the future."
        )
    return max(asked_us, now_us)


def _told(us: int) -> str:
    moment = from_us(us)
    if moment.year < 9999:  # a later one may not exist in the other zone
        moment = moment.astimezone(_ZONE_OF_MESSAGES)
    text = moment.isoformat()
    date, point, rest = text.partition(".")
    return f"{date}.{rest[:6].rstrip('0')}{rest[6:]}" if point else text


def _deadline(given: Message) -> timedelta:
    if not given.HasField("dispatch_deadline"):
        return DEFAULT_DEADLINE
    asked = duration_of(given.dispatch_deadline)
    if asked is None or not MIN_DEADLINE <= asked <= MAX_DEADLINE:
        raise invalid_argument("Task.dispatchDeadline must be between [15s, 30m].")
    return asked - asked % timedelta(milliseconds=1)
