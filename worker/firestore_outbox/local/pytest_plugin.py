"""A pytest fixture that runs the user's handlers in virtual time, on the real engine (docs/handlers.md).

    # conftest.py
    pytest_plugins = ["firestore_outbox.local.pytest_plugin"]

    # test_bot.py
    def test_a_burst_is_answered_once(run_handlers):
        done = run_handlers(bot, messages=["Hello?", "hours"])
        assert len(done.sent) == 1

A run in which no test asks for it imports nothing of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

ACCOUNT = "shop"
PERSON = "+4915550000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    account_id: str
    to: str
    parts: tuple[Mapping[str, Any], ...]

    @property
    def text(self) -> str:
        """The text of its first part that has one; empty if none has."""
        return next((str(part["text"]) for part in self.parts if part.get("text")), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersRan:
    sent: list[SentMessage]
    """In the order in which they went out."""
    dead_letters: list[str]
    """The errors of runs that failed for good."""


@pytest.fixture
def run_handlers() -> Callable[..., HandlersRan]:
    """Runs the handlers of a module with messages and events, in virtual time. Returns what they sent."""

    def run(
        module: ModuleType | str,
        *,
        messages: Sequence[str] = (),
        events: Sequence[tuple[str, str, Mapping[str, Any]]] = (),
        limits: str = "",
        minutes: float = 5,
    ) -> HandlersRan:
        from firestore_outbox.local.handler_world import ran

        name = module if isinstance(module, str) else module.__name__
        return ran(name, messages, events, limits, minutes)

    return run
