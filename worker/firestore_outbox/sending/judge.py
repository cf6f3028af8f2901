"""What becomes of a message after a call: the pure decision (decide.py), with all that it depends on at hand.

An adapter that chose the message's id before the call can foretell it: a receipt may then settle a doubt by that id.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from firestore_outbox.accounts.account import Account
from firestore_outbox.clock import Clock
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.outcome import Outcome, Unknown
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sending.backoff import Backoff
from firestore_outbox.sending.decide import (
    MarkUncertain,
    Policy,
    RetryAt,
    TooEarly,
    Verdict,
    after_receipt_wait,
    decide,
)
from firestore_outbox.settings import Settings


class Judge:
    """For one account as it is now."""

    def __init__(
        self, account: Account, providers: Providers, settings: Settings, clock: Clock, random: Random
    ) -> None:
        self._account = account
        self._providers = providers
        self._clock = clock
        self._random = random
        self._policy = policy_of(account, settings)

    def __call__(self, message: OutboxMessage, outcome: Outcome) -> Verdict:
        provider = self._providers[self._account.provider]
        capability = provider.profile.capability
        foretold = provider.foretold_id(message) if isinstance(outcome, Unknown) else None
        if foretold is not None:  # a receipt can name the message by its id instead of by ours: it comes to the same
            capability = replace(capability, echoes_request_id=True)
        verdict = decide(
            message,
            outcome,
            policy=self._policy,
            capability=capability,
            now=self._clock(),
            jitter=self._random.random(),
        )
        if foretold is not None and isinstance(verdict, MarkUncertain | RetryAt):
            return replace(verdict, message=verdict.message.foretold(foretold))
        return verdict

    def after_the_wait(self, message: OutboxMessage) -> Verdict | TooEarly:
        """An uncertain one that heard of no receipt."""
        return after_receipt_wait(message, policy=self._policy, now=self._clock())


def policy_of(account: Account, settings: Settings) -> Policy:
    return Policy(
        max_attempts=settings.max_attempts,
        backoff=Backoff(
            base=timedelta(seconds=settings.backoff_seconds), cap=timedelta(seconds=settings.backoff_max_seconds)
        ),
        on_uncertain=account.on_uncertain,
        fallback=account.fallback_template,
        receipt_wait=timedelta(seconds=settings.uncertain_seconds),
    )
