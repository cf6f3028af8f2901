"""Every tunable in one frozen object, read once from the environment, which validates itself.

A variable is the field's name in capitals behind OUTBOX_: `lease_seconds` is OUTBOX_LEASE_SECONDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

PREFIX = "OUTBOX_"


class BadSettings(ValueError):
    """A variable that cannot be used; the message names it and says why."""


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    # --- where things are
    project: str = "demo-outbox"
    location: str = "us-central1"
    queue: str = "outbox-lanes"
    """The Cloud Tasks queue that wakes lanes."""
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
    part_jitter_ms: str = "200-500"
    global_per_second: float = Field(default=0, ge=0)
    send_timeout_seconds: float = Field(default=20, gt=0)
    quantum_seconds: float = Field(default=10, gt=0)
    """How long a lane may run while another waits."""
    claim_page: int = Field(default=100, ge=1, le=500)
    """How many queued documents are read at a time."""
    longest_hold_seconds: float = Field(default=540, gt=0)
    """A run ends by itself before the task that started it would be given up (10 minutes by default)."""

    # --- inbound
    debounce_seconds: float = Field(default=5, ge=0)
    debounce_max_seconds: float = Field(default=15, ge=0)

    sweep_seconds: float = Field(default=60, gt=0)

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.backoff_max_seconds < self.backoff_seconds:
            raise ValueError("BACKOFF_MAX_SECONDS must not be less than BACKOFF_SECONDS")
        if self.debounce_max_seconds < self.debounce_seconds:
            raise ValueError("DEBOUNCE_MAX_SECONDS must not be less than DEBOUNCE_SECONDS")
        if self.send_timeout_seconds >= self.lease_seconds / 2:
            raise ValueError("SEND_TIMEOUT_SECONDS must be less than half of LEASE_SECONDS")
        low, high = self.part_jitter
        if low > high:
            raise ValueError("PART_JITTER_MS must be LOW-HIGH, such as 200-500")
        return self

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def part_jitter(self) -> tuple[timedelta, timedelta]:
        try:
            low, high = (timedelta(milliseconds=int(text)) for text in self.part_jitter_ms.split("-"))
        except ValueError:
            raise ValueError("PART_JITTER_MS must be LOW-HIGH, such as 200-500") from None
        return low, high

    @property
    def queue_name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/queues/{self.queue}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        given: dict[str, str] = {}
        for name, value in environment.items():
            field = name.removeprefix(PREFIX).lower()
            if name.startswith(PREFIX) and field in cls.model_fields and value != "":
                given[field] = value
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"{PREFIX}{part}".upper() for part in first["loc"])
            raise BadSettings(f"{where + ': ' if where else ''}{first['msg']}") from None
