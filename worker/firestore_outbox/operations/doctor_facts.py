"""What `outbox doctor` knows of a project, and what it says about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

DEPLOY_PROJECT, DEPLOY_FIRESTORE = "deploy/project.sh", "deploy/firestore.sh"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API returned for something that exists."""

    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Absent:
    """The API says that it does not exist."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The API did not say: no permission, not enabled, or no answer."""

    reason: str


Fact = Answer | Absent | Refused

WORKER = "outbox-worker"
"""The Cloud Run service of the worker, as deploy/names.sh names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    project: str
    location: str
    worker_url: str
    database_id: str
    """As the settings of this terminal say; empty if they say nothing of their own."""
    database: Fact
    indexes: Fact
    """`indexes`: all composite indexes."""
    ttl: Fact
    """`fields`: those with a TTL policy."""
    rules: Fact
    """The ruleset that is in force."""
    queues: Mapping[str, Fact]
    """Each queue that the worker's settings name, by its id."""
    functions: Fact
    """`functions`: all that are deployed in the region."""
    job: Fact
    """Of Cloud Scheduler: the sweep."""
    worker: Fact
    """The Cloud Run service."""
    service_accounts: Mapping[str, Fact]
    secrets: Fact
    """`secrets`: all secrets of accounts."""
    accounts: Fact
    """`documents` of the collection `accounts`."""


def settings_of(worker: Fact) -> dict[str, str]:
    """The variables of the deployed worker; none if it is not known. A secret's value is not among them."""
    template = (worker.content.get("template") or {}) if isinstance(worker, Answer) else {}
    variables = [one for container in template.get("containers", ()) for one in container.get("env", ())]
    return {str(one.get("name")): str(one["value"]) for one in variables if "value" in one}


class Verdict(StrEnum):
    OK = "ok"
    WAIT = "wait"
    """It becomes good by itself."""
    WARNING = "warning"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    verdict: Verdict
    sentence: str
    fix: str | None = None
    """The command to run, or what else to do; None if nothing is to be done."""


def not_there(name: str, fact: Absent | Refused, sentence: str, fix: str) -> Iterator[Check]:
    yield unknown(name, fact.reason) if isinstance(fact, Refused) else broken(name, sentence, fix)


def ok(name: str, sentence: str) -> Check:
    return Check(name=name, verdict=Verdict.OK, sentence=sentence)


def broken(name: str, sentence: str, fix: str) -> Check:
    return Check(name=name, verdict=Verdict.BROKEN, sentence=sentence, fix=fix)


def unknown(name: str, reason: str) -> Check:
    fix = "sign in as an owner of the project: gcloud auth application-default login"
    if "not been used" in reason or "disabled" in reason:
        fix = f"{DEPLOY_PROJECT}, which enables the APIs"
    return Check(name=name, verdict=Verdict.UNKNOWN, sentence=f"It could not be checked: {reason}", fix=fix)
