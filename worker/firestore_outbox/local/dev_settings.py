"""What can be chosen about a stack on this machine: its ports, its database, its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firestore_outbox.local.product import INDEXES, RULES

PROJECT = "demo-outbox"


@dataclass(frozen=True, kw_only=True)
class DevSettings:
    """Ports of 0 are free ones."""

    project: str = PROJECT
    """The project id of all parts; clients must use the same."""
    firestore_port: int = 8080
    tasks_port: int = 8123
    functions_port: int = 8081
    worker_port: int = 8082
    provider_port: int = 8083
    page_port: int | None = None
    """Where to serve the chat page; None serves none."""
    console_port: int | None = None
    """Where to serve the console; None serves none."""
    identity_port: int = 0
    """Where the console finds its stand-in for Firebase Auth."""
    data: Path | None = None
    """A directory; None keeps everything in memory."""
    indexes: Path | None = INDEXES
    """Queries that production would refuse, with these, are refused; None serves all."""
    rules: Path | None = RULES
    """Security rules for browsers and apps, on either emulator; server-side clients pass them by. None: no rules."""
    official: bool = False
    """Google's Firestore emulator instead of ours."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of functions and workers."""
    sweep_seconds: float = 60.0

    @property
    def wanted_ports(self) -> dict[str, int]:
        wanted = {
            "firestore": self.firestore_port,
            "tasks": self.tasks_port,
            "functions": self.functions_port,
            "worker": self.worker_port,
            "provider": self.provider_port,
        }
        if self.page_port is not None:
            wanted["page"] = self.page_port
        if self.console_port is not None:
            wanted |= {"console": self.console_port, "identity": self.identity_port}
        return wanted
