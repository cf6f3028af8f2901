"""Whether a Google Cloud project is set up as the outbox needs it: facts in, checks out, each with its fix.

The facts are answers of Google's REST APIs, as they came (ask_google.py). This module asks nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SERVICE_ACCOUNTS = ("outbox-worker", "outbox-functions", "outbox-tasks", "outbox-events", "outbox-deploy")
SECRET_PREFIX = "outbox-account-"
LONGEST_BACKOFF_SECONDS = 300.0
"""Above this, a task that failed sleeps longer than the sweep's next rounds. Google's default is an hour."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    project: str
    location: str
    queue: str
    worker_url: str
    """As the settings of this terminal say; empty if they say nothing of their own."""
    database: Fact
    indexes: Fact
    """`indexes`: all composite indexes."""
    ttl: Fact
    """`fields`: those with a TTL policy."""
    rules: Fact
    """The ruleset that is in force."""
    task_queue: Fact
    job: Fact
    """Of Cloud Scheduler: the sweep."""
    worker: Fact
    """The Cloud Run service."""
    service_accounts: Mapping[str, Fact]
    secrets: Fact
    """`secrets`: all secrets of accounts."""
    accounts: Fact
    """`documents` of the collection `accounts`."""


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


def examine(facts: Facts, wanted: Mapping[str, Any], rules: str) -> list[Check]:
    """`wanted` is the content of firestore.indexes.json, `rules` that of firestore.rules."""
    return [
        *_database(facts),
        *_indexes(facts, wanted),
        *_ttl(facts, wanted),
        *_rules(facts, rules),
        *_queue(facts),
        *_scheduler(facts),
        *_worker(facts),
        *_service_accounts(facts),
        *_secrets(facts),
    ]


def _database(facts: Facts) -> Iterator[Check]:
    match facts.database:
        case Absent():
            yield _broken("database", "There is no database (default).", DEPLOY_PROJECT)
        case Refused(reason):
            yield _unknown("database", reason)
        case Answer(content) if content.get("type") != "FIRESTORE_NATIVE":
            yield _broken(
                "database",
                f"The database is of type {content.get('type')}; the outbox needs Firestore in native mode.",
                "use another project: a database's type changes only while it is empty",
            )
        case Answer(content):
            yield _ok("database", f"(default) is in {content.get('locationId')}.")


def _indexes(facts: Facts, wanted: Mapping[str, Any]) -> Iterator[Check]:
    if not isinstance(facts.indexes, Answer):
        yield from _not_there("indexes", facts.indexes, "There are no indexes.", DEPLOY_FIRESTORE)
        return
    states = {_shape_of(one): str(one.get("state")) for one in facts.indexes.content.get("indexes", ())}
    shapes = [_shape(one["collectionGroup"], one["queryScope"], one["fields"]) for one in wanted["indexes"]]
    missing = [shape for shape in shapes if shape not in states]
    building = [shape for shape in shapes if states.get(shape) == "CREATING"]
    failed = [shape for shape in shapes if states.get(shape) == "NEEDS_REPAIR"]
    if missing:
        yield _broken("indexes", f"Missing: {'; '.join(missing)}.", DEPLOY_FIRESTORE)
    if failed:
        fix = f"delete them in the console, then run {DEPLOY_FIRESTORE}"
        yield _broken("indexes", f"Could not be built: {'; '.join(failed)}.", fix)
    if building:
        sentence = (
            f"{len(building)} of {len(shapes)} are being built: {'; '.join(building)}. Queries that need them fail."
        )
        fix = "wait, and run outbox doctor again"
        yield Check(name="indexes", verdict=Verdict.WAIT, sentence=sentence, fix=fix)
    if not missing and not failed and not building:
        yield _ok("indexes", f"All {len(shapes)} are READY.")


def _shape_of(index: Mapping[str, Any]) -> str:
    """Of an index as the API names it: the collection is in its name, and `__name__` is its last field."""
    parts = str(index.get("name")).split("/")
    fields = [one for one in index.get("fields", ()) if one.get("fieldPath") != "__name__"]
    return _shape(parts[-3] if len(parts) > 3 else "", str(index.get("queryScope")), fields)


def _shape(collection: str, scope: str, fields: Sequence[Mapping[str, Any]]) -> str:
    group = " (group)" if scope == "COLLECTION_GROUP" else ""
    named = (f"{'-' if one.get('order') == 'DESCENDING' else ''}{one.get('fieldPath')}" for one in fields)
    return f"{collection}{group}({', '.join(named)})"


def _ttl(facts: Facts, wanted: Mapping[str, Any]) -> Iterator[Check]:
    if not isinstance(facts.ttl, Answer):
        yield from _not_there("ttl", facts.ttl, "There is no TTL policy.", DEPLOY_FIRESTORE)
        return
    policies = {}
    for one in facts.ttl.content.get("fields", ()):
        parts = str(one.get("name")).split("/")
        policies[parts[-3], parts[-1]] = str((one.get("ttlConfig") or {}).get("state"))
    needed = [(one["collectionGroup"], one["fieldPath"]) for one in wanted["fieldOverrides"] if one.get("ttl")]
    missing = [".".join(one) for one in needed if policies.get(one) not in ("ACTIVE", "CREATING")]
    creating = [".".join(one) for one in needed if policies.get(one) == "CREATING"]
    if missing:
        yield _broken("ttl", f"No TTL policy on {', '.join(missing)}: ended documents stay for ever.", DEPLOY_FIRESTORE)
    elif creating:
        sentence = f"The TTL policy on {', '.join(creating)} is being created."
        yield Check(name="ttl", verdict=Verdict.WAIT, sentence=sentence, fix="wait, and run outbox doctor again")
    else:
        yield _ok("ttl", f"Policies are active on {', '.join('.'.join(one) for one in needed)}.")


def _rules(facts: Facts, rules: str) -> Iterator[Check]:
    if not isinstance(facts.rules, Answer):
        sentence = "No security rules are deployed: clients can read and write nothing."
        yield from _not_there("rules", facts.rules, sentence, DEPLOY_FIRESTORE)
        return
    files = (facts.rules.content.get("source") or {}).get("files") or ()
    if any(_same_text(str(file.get("content")), rules) for file in files):
        yield _ok("rules", "The deployed rules are those of this version.")
    elif any(rules.strip() in str(file.get("content")) for file in files):
        yield _ok("rules", "The deployed rules contain those of this version.")
    else:
        sentence = "The deployed rules differ from firestore.rules of this version."
        fix = f"{DEPLOY_FIRESTORE}; if the project has rules of its own, add ours to them first"
        yield Check(name="rules", verdict=Verdict.WARNING, sentence=sentence, fix=fix)


def _same_text(one: str, other: str) -> bool:
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]


def _queue(facts: Facts) -> Iterator[Check]:
    fix = "deploy/queue.sh"
    if not isinstance(facts.task_queue, Answer):
        where = f"{facts.queue} in {facts.location}"
        yield from _not_there("queue", facts.task_queue, f"There is no queue {where}: no lane is woken.", fix)
        return
    state = facts.task_queue.content.get("state")
    backoff = _seconds((facts.task_queue.content.get("retryConfig") or {}).get("maxBackoff"))
    if state != "RUNNING":
        resume = f"gcloud tasks queues resume {facts.queue} --location={facts.location} --project={facts.project}"
        yield _broken("queue", f"The queue {facts.queue} is {state}: no lane is woken.", resume)
    elif backoff is not None and backoff > LONGEST_BACKOFF_SECONDS:
        sentence = f"A task that failed waits up to {backoff:g} s, and its lane with it."
        yield Check(name="queue", verdict=Verdict.WARNING, sentence=sentence, fix=fix)
    else:
        yield _ok("queue", f"{facts.queue} in {facts.location} is running.")


def _seconds(duration: Any) -> float | None:
    """Of a JSON duration such as `3.5s`."""
    text = str(duration or "")
    try:
        return float(text.removesuffix("s")) if text.endswith("s") else None
    except ValueError:
        return None


def _scheduler(facts: Facts) -> Iterator[Check]:
    fix = "deploy/schedule.sh"
    if not isinstance(facts.job, Answer):
        sentence = f"There is no job outbox-sweep in {facts.location}: what an event lost is never found."
        yield from _not_there("scheduler", facts.job, sentence, fix)
        return
    job = facts.job.content
    code = (job.get("status") or {}).get("code", 0)
    audience = ((job.get("httpTarget") or {}).get("oidcToken") or {}).get("audience")
    if job.get("state") != "ENABLED":
        resume = f"gcloud scheduler jobs resume outbox-sweep --location={facts.location} --project={facts.project}"
        yield _broken("scheduler", f"The job outbox-sweep is {job.get('state')}.", resume)
    elif facts.worker_url and audience != facts.worker_url:
        sentence = f"The job's token is for {audience}, and the worker is {facts.worker_url}: the worker refuses it."
        yield _broken("scheduler", sentence, fix)
    elif code:
        sentence = f"The last sweep failed (code {code}, at {job.get('lastAttemptTime')})."
        logs = 'gcloud logging read "resource.type=cloud_scheduler_job" --limit=5'
        yield Check(name="scheduler", verdict=Verdict.WARNING, sentence=sentence, fix=logs)
    else:
        yield _ok("scheduler", f"outbox-sweep runs at {job.get('schedule')!r}.")


def _worker(facts: Facts) -> Iterator[Check]:
    fix = "deploy/worker.sh IMAGE"
    if not isinstance(facts.worker, Answer):
        yield from _not_there("worker", facts.worker, f"There is no service outbox-worker in {facts.location}.", fix)
        return
    condition = facts.worker.content.get("terminalCondition") or {}
    if condition.get("state") == "CONDITION_SUCCEEDED":
        yield _ok("worker", "The service outbox-worker is ready.")
    else:
        sentence = f"The service outbox-worker is not ready: {condition.get('message') or condition.get('state')}"
        yield _broken("worker", sentence, f"correct the cause, then run {fix}")


def _service_accounts(facts: Facts) -> Iterator[Check]:
    found = facts.service_accounts
    absent = [name for name, fact in found.items() if isinstance(fact, Absent)]
    off = [name for name, fact in found.items() if isinstance(fact, Answer) and fact.content.get("disabled")]
    refused = [fact.reason for fact in found.values() if isinstance(fact, Refused)]
    if absent:
        yield _broken("service accounts", f"Missing: {', '.join(absent)}.", DEPLOY_PROJECT)
    for name in off:
        email = f"{name}@{facts.project}.iam.gserviceaccount.com"
        yield _broken("service accounts", f"{name} is disabled.", f"gcloud iam service-accounts enable {email}")
    if refused:
        yield _unknown("service accounts", refused[0])
    if not absent and not off and not refused:
        yield _ok("service accounts", f"All {len(found)} exist.")


def _secrets(facts: Facts) -> Iterator[Check]:
    for fact in (facts.secrets, facts.accounts):
        if isinstance(fact, Refused):
            yield _unknown("secrets", fact.reason)
            return
    secrets = facts.secrets.content.get("secrets", ()) if isinstance(facts.secrets, Answer) else ()
    documents = facts.accounts.content.get("documents", ()) if isinstance(facts.accounts, Answer) else ()
    known = {str(one.get("name")).rpartition("/")[2] for one in secrets}
    accounts = [str(one.get("name")).rpartition("/")[2] for one in documents]
    missing = [account for account in accounts if SECRET_PREFIX + account not in known]
    for account in missing:
        fix = f"outbox accounts add {account} --replace"
        yield _broken("secrets", f"The account {account} has no secret {SECRET_PREFIX}{account}.", fix)
    if not accounts:
        sentence, fix = "There is no account yet.", "outbox accounts add"
        yield Check(name="secrets", verdict=Verdict.WARNING, sentence=sentence, fix=fix)
    elif not missing:
        yield _ok("secrets", f"Each of {len(accounts)} accounts has its secret.")


def _not_there(name: str, fact: Absent | Refused, sentence: str, fix: str) -> Iterator[Check]:
    yield _unknown(name, fact.reason) if isinstance(fact, Refused) else _broken(name, sentence, fix)


def _ok(name: str, sentence: str) -> Check:
    return Check(name=name, verdict=Verdict.OK, sentence=sentence)


def _broken(name: str, sentence: str, fix: str) -> Check:
    return Check(name=name, verdict=Verdict.BROKEN, sentence=sentence, fix=fix)


def _unknown(name: str, reason: str) -> Check:
    fix = "sign in as an owner of the project: gcloud auth application-default login"
    if "not been used" in reason or "disabled" in reason:
        fix = f"{DEPLOY_PROJECT}, which enables the APIs"
    return Check(name=name, verdict=Verdict.UNKNOWN, sentence=f"It could not be checked: {reason}", fix=fix)
