"""Every tunable in one frozen object, read once from the environment, which validates itself.

A variable is the field's name in capitals behind OUTBOX_: `lease_seconds` is OUTBOX_LEASE_SECONDS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from firestore_outbox.billing.prices import Offer, offered
from firestore_outbox.handlers.sources import sources
from firestore_outbox.limits.line import rates
from firestore_outbox.plans.plan import plans as known_plans
from firestore_outbox.sessions.layout import Layout, layouts
from firestore_outbox.sessions.states import Rules

PREFIX = "OUTBOX_"
READ_ELSEWHERE = frozenset(
    {"OUTBOX_CREDENTIALS", "OUTBOX_DOCTOR_EMULATOR_HOST", "OUTBOX_HOST", "OUTBOX_LOG_LEVEL"}
    | {f"OUTBOX_{name}_URL" for name in ("INTERAKT", "SIMULATED", "WHATSAPP_CLOUD")}
)
"""Variables that other modules read."""
CLOUD_RUN_VARIABLE = "K_SERVICE"
"""Set by Cloud Run, for services and functions alike."""
EMULATOR_SUFFIX = "_EMULATOR_HOST"
"""How the names of all variables end that put an emulator in the place of a Google service."""


ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-]+(:\d{1,5})?")


class BadSettings(ValueError):
    """A variable that cannot be used; the message names it and says why."""


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    # --- where things are
    project: str = "demo-outbox"
    database: str = Field(default="(default)", min_length=1)
    """The Firestore database; a project may have several."""
    location: str = "us-central1"
    queue: str = "outbox-lanes"
    """The Cloud Tasks queue that wakes lanes."""
    queues: int = Field(default=1, ge=1)
    """How many such queues there are: a lane's task goes to one of them. The second is named QUEUE-1, and so on."""
    receipt_queue: str = ""
    """The queue of receipts that came before their message. Empty: the first queue of lanes."""
    worker_url: str = "http://127.0.0.1:8082"
    """Where Cloud Tasks finds the worker; also the audience of its tokens."""
    service_account: str = "outbox-tasks@demo-outbox.iam.gserviceaccount.com"
    """Whose token a task carries."""
    tasks_emulator_host: str = ""
    """HOST:PORT of a Cloud Tasks emulator; empty means Google's."""

    # --- leases and attempts
    lease_seconds: float = Field(default=60, gt=1)
    max_attempts: int = Field(default=5, ge=1)
    backoff_seconds: float = Field(default=1, gt=0)
    backoff_max_seconds: float = Field(default=60, gt=0)
    uncertain_seconds: float = Field(default=120, gt=0)
    """How long a receipt may take to settle a send whose outcome is unknown."""

    # --- how much at once, and how fast
    lane_concurrency: int = Field(default=8, ge=1)
    per_minute: float = Field(default=40, ge=0)
    send_concurrency: int = Field(default=3, ge=1)
    urgent_per_minute: float = Field(default=10, ge=0)
    """How many urgent messages of an account go ahead of its others; 0: none."""
    part_jitter_ms: str = "200-500"
    global_per_second: float = Field(default=0, ge=0)
    send_timeout_seconds: float = Field(default=20, gt=0)
    quantum_seconds: float = Field(default=10, gt=0)
    """How long a lane may run while another waits."""
    claim_page: int = Field(default=100, ge=1, le=500)
    """How many queued documents are read at a time."""
    overlap_seconds: float = Field(default=10, ge=0)
    """How far each page of queued documents reaches back behind the page before it. Longer than any commit takes from
    its server timestamp until it is visible; `outbox audit` warns when the longest gap comes near it."""
    lane_backoff_max_seconds: float = Field(default=900, gt=0)
    """The longest wait before a lane whose handler keeps raising errors is tried again."""
    longest_hold_seconds: float = Field(default=540, gt=0)
    """How long a task's request stays open at most, from its beginning: less than Cloud Tasks waits for (10 minutes by
    default). Lanes under it end by themselves then."""
    carried_lanes: int = Field(default=80, ge=0)
    """Lanes that run at once under one open request of a process. Further ones keep a request open each."""

    # --- the event function (docs/lane.md, "The short path")
    short_turns: bool = True
    """Whether the function that receives a message's event sends the message itself, if it came alone. It then needs
    the providers' credentials and a way to the providers. `0`: a worker sends every message."""
    function_seconds: float = Field(default=60, gt=0)
    """The timeout of the event function, as it is deployed. A short turn starts only if the longest call ends 12 s
    before it."""

    # --- files (docs/media.md)
    media_bucket: str = ""
    """A Cloud Storage bucket that keeps files, as `media/{accountId}/{mediaId}`. Empty, as the next: no file can be
    sent."""
    media_dir: str = ""
    """A directory that keeps files on one machine, as `{accountId}/{mediaId}`."""
    media_url: str = ""
    """Where providers fetch files, as `{url}/{accountId}/{mediaId}`; by default a bucket signs addresses of its own."""
    files_url: str = ""
    """Where a file server for the directory is: apps upload there, and fetch from there. Empty: only a bucket takes
    uploads."""
    upload_types: str = (
        "image/jpeg,image/png,image/webp,image/gif,video/*,audio/*,"
        "application/pdf,text/plain,application/vnd.*,application/msword"
    )
    """Types of files that apps may upload, with commas; `image/*` stands for all images."""
    media_max_mb: float = Field(default=100, gt=0)
    inbound_max_mb: float = Field(default=20, gt=0)
    """The largest file of an inbound message that is fetched; also what a process holds of such files at a time."""
    media_memory_mb: float = Field(default=128, gt=0)
    """How much of files one process holds in memory at a time, in all. The default fits the deployed 512 MiB."""

    # --- notifications (docs/notifications.md)
    notify_anywhere: bool = False
    """Whether notifications may go to http URLs and private addresses: on one machine alone."""
    fcm_emulator_host: str = ""
    """HOST:PORT of a stand-in for Firebase Cloud Messaging; empty means Google's."""

    # --- sealed messages (docs/privacy.md)
    kms_key: str = ""
    """The Cloud KMS key that wraps accounts' private keys. Empty: sealed messages wait for a worker that has it."""
    kms_emulator_host: str = ""
    """HOST:PORT of a stand-in for Cloud KMS; empty means Google's."""

    # --- plans (docs/plans.md)
    plans: str = ""
    """The plans that accounts may have, such as `free=total:3 basic=day:100,month:1000 pro=`. Empty: no limits."""

    # --- billing (docs/billing.md)
    billing_prices: str = ""
    """Which of the plans are sold, from the smallest to the largest, and at which of Stripe's prices, such as
    `basic=price_1 pro=price_2`. Empty: no billing."""
    billing_unpaid_plan: str = "free"
    """The plan of an account whose subscription ended."""
    billing_grace_days: float = Field(default=7, ge=0)
    """How long a plan stays after a payment failed."""
    billing_return_url: str = ""
    """Where Stripe's pages lead back to."""
    stripe_secret_key: str = Field(default="", repr=False)
    stripe_webhook_secret: str = Field(default="", repr=False)
    """Verifies the events that Stripe delivers to the function `billing_webhook`."""
    stripe_emulator_host: str = ""
    """HOST:PORT of a stand-in for Stripe; empty means Stripe."""

    # --- your code (docs/handlers.md)
    handlers: str = ""
    """Modules with functions marked @conversation or @keyed, with commas between them. Empty: no code of yours runs."""
    handler_url: str = ""
    """A service in any language that handles instead (docs/handlers.md). Empty: none."""
    handler_kinds: str = "conversation"
    """What that service handles: `conversation` and kinds of your own, with commas between them."""
    handler_secret: str = Field(default="", repr=False)
    """Signs the calls to that service."""
    debounce_seconds: float = Field(default=5, ge=0)
    """How long a conversation or another key must be quiet before its handler runs, unless the decorator says."""
    debounce_max_seconds: float = Field(default=15, ge=0)
    """And how long after the first event it runs at the latest."""
    allowed_origins: str = ""
    """Web pages that may call the HTTP API, with commas: https://app.example; * allows all. Empty: none."""
    events: str = ""
    """Which events come by HTTP, and how their calls are signed: JSON, or the name of a JSON file (docs/handlers.md).
    Empty: none."""
    limits: str = ""
    """Rates that all instances share, for limits without a document: NAME=PER_SECOND/BURST, such as notion=3/3, with
    commas between them."""

    # --- webhooks
    webhook_url: str = ""
    """Where providers reach the function `provider_webhook`: what `outbox accounts connect` tells a gateway. Empty: no
    session can be made."""
    receipt_retry_seconds: str = "2,10,60,600"
    """A receipt for a message that is not known yet is looked at again after each of these; then it is dropped."""
    webhook_receipts: int = Field(default=50, ge=1)
    """How many receipts of one webhook are applied before it is answered. The others go to Cloud Tasks."""
    webhook_seconds: float = Field(default=1, gt=0)
    """And for how long at most."""

    # --- bodies of HTTP requests (web/bodies.py)
    body_seconds: float = Field(default=10, gt=0)
    """How long a caller may take to send one."""
    body_memory_mb: float = Field(default=32, gt=0)
    """What all bodies of a process may hold together; more are answered with 503."""

    # --- sessions (docs/sessions.md)
    hot_sessions: int = Field(default=5, ge=1)
    hot_shards: int = Field(default=1, ge=1)
    """Documents over which the hot set is spread; at most one for each session."""
    gateways: str = ""
    """Gateways with a hot set of their own: HOST:PORT=SESSIONS/SHARDS, with commas between them."""
    session_idle_seconds: float = Field(default=60, ge=0)
    session_connect_seconds: float = Field(default=60, gt=0)
    sticky_hours: float = Field(default=24, ge=0)

    sweep_seconds: float = Field(default=60, gt=0)
    lane_shards: int = Field(default=30, ge=1)
    """Ranges that the index of acquirable lanes is spread over, at 300 writes a second each. The sweep asks one query
    for each 30 of them. Never lower it below what lanes were written with."""

    # --- the console (docs/console.md)
    firebase_api_key: str = ""
    """The web API key of the Firebase project, with which the console signs people in. It is public."""

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.backoff_max_seconds < self.backoff_seconds:
            raise ValueError("BACKOFF_MAX_SECONDS must not be less than BACKOFF_SECONDS")
        if self.debounce_max_seconds < self.debounce_seconds:
            raise ValueError("DEBOUNCE_MAX_SECONDS must not be less than DEBOUNCE_SECONDS")
        if self.send_timeout_seconds >= self.lease_seconds / 2:
            raise ValueError("SEND_TIMEOUT_SECONDS must be less than half of LEASE_SECONDS")
        if self.media_bucket and self.media_dir:
            raise ValueError("MEDIA_BUCKET and MEDIA_DIR are two places for the same files; set one of them")
        if self.handler_url and not (self.handler_secret and self.handler_url.startswith(("http://", "https://"))):
            raise ValueError("HANDLER_URL must be an http address, and HANDLER_SECRET must be set with it")
        self._check_json()
        self._check_billing()
        if any(origin != "*" and not ORIGIN.fullmatch(origin) for origin in self.origins):
            raise ValueError("ALLOWED_ORIGINS must be origins with commas, such as https://app.example:8443; or *")
        low, high = self.part_jitter
        if low > high:
            raise ValueError("PART_JITTER_MS must be LOW-HIGH, such as 200-500")
        if any(wait <= timedelta(0) for wait in self.receipt_waits):
            raise ValueError("RECEIPT_RETRY_SECONDS must be numbers above 0, such as 2,10,60,600")
        return self

    def _check_billing(self) -> None:
        if not self.billing_prices:
            return
        for name in ("stripe_secret_key", "stripe_webhook_secret", "billing_return_url"):
            if not getattr(self, name):
                raise ValueError(f"{name.upper()} must be set with BILLING_PRICES")
        if not self.billing_return_url.startswith(("http://", "https://")):
            raise ValueError("BILLING_RETURN_URL must be an http address")
        known = known_plans(self.plans)
        for plan in (self.billing_unpaid_plan, *(plan for plan, _ in offered(self.billing_prices))):
            if plan not in known:
                raise ValueError(f"BILLING_PRICES and BILLING_UNPAID_PLAN: PLANS has no plan {plan!r}")

    def _check_json(self) -> None:
        for origin in self.origins:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"OUTBOX_ALLOWED_ORIGINS has {origin!r}; an origin is https://HOST or https://HOST:PORT"
                )
        events = self.events if self.events.lstrip().startswith("{") else ""
        for name, parse, value in (
            ("LIMITS", rates, self.limits),
            ("GATEWAYS", layouts, self.gateways),
            ("EVENTS", sources, events),
            ("PLANS", known_plans, self.plans),
            ("BILLING_PRICES", offered, self.billing_prices),
        ):
            try:
                parse(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

    @property
    def hot_rules(self) -> Rules:
        return Rules(
            slots=self.hot_sessions,
            sticky_budget=timedelta(hours=self.sticky_hours),
            idle=timedelta(seconds=self.session_idle_seconds),
            connect=timedelta(seconds=self.session_connect_seconds),
        )

    @property
    def hot_layout(self) -> Layout:
        """Of the default hot set."""
        return Layout(slots=self.hot_sessions, shards=min(self.hot_shards, self.hot_sessions))

    @property
    def offer(self) -> Offer:
        return Offer(
            prices=offered(self.billing_prices),
            unpaid=self.billing_unpaid_plan,
            grace=timedelta(days=self.billing_grace_days),
        )

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(one.strip() for one in self.allowed_origins.split(",") if one.strip())

    @property
    def taken_types(self) -> tuple[str, ...]:
        return tuple(one.strip() for one in self.upload_types.split(",") if one.strip())

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def overlap(self) -> timedelta:
        return timedelta(seconds=self.overlap_seconds)

    @property
    def part_jitter(self) -> tuple[timedelta, timedelta]:
        try:
            low, high = (timedelta(milliseconds=int(text)) for text in self.part_jitter_ms.split("-"))
        except ValueError:
            raise ValueError("PART_JITTER_MS must be LOW-HIGH, such as 200-500") from None
        return low, high

    @property
    def receipt_waits(self) -> tuple[timedelta, ...]:
        try:
            return tuple(timedelta(seconds=float(text)) for text in self.receipt_retry_seconds.split(","))
        except (ValueError, OverflowError):
            raise ValueError("RECEIPT_RETRY_SECONDS must be numbers above 0, such as 2,10,60,600") from None

    @property
    def queue_name(self) -> str:
        return self._queue_name(self.queue)

    @property
    def lane_queue_names(self) -> tuple[str, ...]:
        """The queues among which lanes are divided."""
        return (self.queue_name, *(self._queue_name(f"{self.queue}-{number}") for number in range(1, self.queues)))

    @property
    def receipt_queue_name(self) -> str:
        return self._queue_name(self.receipt_queue or self.queue)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """All queues."""
        return tuple(dict.fromkeys((*self.lane_queue_names, self.receipt_queue_name)))

    def _queue_name(self, queue: str) -> str:
        return f"projects/{self.project}/locations/{self.location}/queues/{queue}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Raises `BadSettings`, also for an emulator that is named on Cloud Run: there a forgotten variable would
        send tasks nowhere, or make the worker believe tokens that anybody can sign."""
        emulators = sorted(name for name, value in environment.items() if name.endswith(EMULATOR_SUFFIX) and value)
        if environment.get(CLOUD_RUN_VARIABLE) and emulators:
            raise BadSettings(
                f"{', '.join(emulators)}: an emulator cannot be used on Cloud Run ({CLOUD_RUN_VARIABLE} is set)."
                " Remove the variable from the service."
            )
        given: dict[str, str] = {}
        for name, value in environment.items():
            field = name.removeprefix(PREFIX).lower()
            if not name.startswith(PREFIX) or value == "":
                continue
            if field in cls.model_fields:
                given[field] = value
            elif name not in READ_ELSEWHERE and (meant := get_close_matches(field, cls.model_fields, 1, 0.85)):
                raise BadSettings(f"there is no setting {name}; did you mean {PREFIX}{meant[0].upper()}?")
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"{PREFIX}{part}".upper() for part in first["loc"])
            raise BadSettings(f"{where + ': ' if where else ''}{first['msg']}") from None
