"""Whether a Google Cloud project is set up as the outbox needs it: facts in, checks out, each with its fix.

The facts are answers of Google's REST APIs, as they came (ask_google.py). This module asks nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from firestore_outbox.operations.doctor_calls import examine_functions, examine_queues
from firestore_outbox.operations.doctor_facts import (
    DEPLOY_FIRESTORE,
    DEPLOY_PROJECT,
    Absent,
    Answer,
    Check,
    Facts,
    Refused,
    Verdict,
    broken,
    not_there,
    ok,
    unknown,
)

SERVICE_ACCOUNTS = (
    "outbox-worker",
    "outbox-functions",
    "outbox-console",
    "outbox-tasks",
    "outbox-events",
    "outbox-deploy",
)
SECRET_PREFIX = "outbox-account-"


def examine(facts: Facts, wanted: Mapping[str, Any], rules: str) -> list[Check]:
    """`wanted` is the content of firestore.indexes.json, `rules` that of firestore.rules."""
    return [
        *_database(facts),
        *_indexes(facts, wanted),
        *_ttl(facts, wanted),
        *_rules(facts, rules),
        *examine_queues(facts),
        *_scheduler(facts),
        *_worker(facts),
        *examine_functions(facts),
        *_service_accounts(facts),
        *_secrets(facts),
    ]


def _database(facts: Facts) -> Iterator[Check]:
    match facts.database:
        case Absent():
            yield broken("database", f"There is no database {facts.database_id}.", DEPLOY_PROJECT)
        case Refused(reason):
            yield unknown("database", reason)
        case Answer(content) if content.get("type") != "FIRESTORE_NATIVE":
            yield broken(
                "database",
                f"The database is of type {content.get('type')}; the outbox needs Firestore in native mode.",
                "use another project: a database's type changes only while it is empty",
            )
        case Answer(content):
            yield ok("database", f"{facts.database_id} is in {content.get('locationId')}.")


def _indexes(facts: Facts, wanted: Mapping[str, Any]) -> Iterator[Check]:
    if not isinstance(facts.indexes, Answer):
        yield from not_there("indexes", facts.indexes, "There are no indexes.", DEPLOY_FIRESTORE)
        return
    states = {_shape_of(one): str(one.get("state")) for one in facts.indexes.content.get("indexes", ())}
    shapes = [_shape(one["collectionGroup"], one["queryScope"], one["fields"]) for one in wanted["indexes"]]
    missing = [shape for shape in shapes if shape not in states]
    building = [shape for shape in shapes if states.get(shape) == "CREATING"]
    failed = [shape for shape in shapes if states.get(shape) == "NEEDS_REPAIR"]
    if missing:
        yield broken("indexes", f"Missing: {'; '.join(missing)}.", DEPLOY_FIRESTORE)
    if failed:
        fix = f"delete them in the console, then run {DEPLOY_FIRESTORE}"
        yield broken("indexes", f"Could not be built: {'; '.join(failed)}.", fix)
    if building:
        sentence = (
            f"{len(building)} of {len(shapes)} are being built: {'; '.join(building)}. Queries that need them fail."
        )
        fix = "wait, and run outbox doctor again"
        yield Check(name="indexes", verdict=Verdict.WAIT, sentence=sentence, fix=fix)
    if not missing and not failed and not building:
        yield ok("indexes", f"All {len(shapes)} are READY.")


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
        yield from not_there("ttl", facts.ttl, "There is no TTL policy.", DEPLOY_FIRESTORE)
        return
    policies = {}
    for one in facts.ttl.content.get("fields", ()):
        parts = str(one.get("name")).split("/")
        policies[parts[-3], parts[-1]] = str((one.get("ttlConfig") or {}).get("state"))
    needed = [(one["collectionGroup"], one["fieldPath"]) for one in wanted["fieldOverrides"] if one.get("ttl")]
    missing = [".".join(one) for one in needed if policies.get(one) not in ("ACTIVE", "CREATING")]
    creating = [".".join(one) for one in needed if policies.get(one) == "CREATING"]
    if missing:
        yield broken("ttl", f"No TTL policy on {', '.join(missing)}: ended documents stay for ever.", DEPLOY_FIRESTORE)
    elif creating:
        sentence = f"The TTL policy on {', '.join(creating)} is being created."
        yield Check(name="ttl", verdict=Verdict.WAIT, sentence=sentence, fix="wait, and run outbox doctor again")
    else:
        yield ok("ttl", f"Policies are active on {', '.join('.'.join(one) for one in needed)}.")


def _rules(facts: Facts, rules: str) -> Iterator[Check]:
    if not isinstance(facts.rules, Answer):
        sentence = "No security rules are deployed: clients can read and write nothing."
        yield from not_there("rules", facts.rules, sentence, DEPLOY_FIRESTORE)
        return
    files = (facts.rules.content.get("source") or {}).get("files") or ()
    if any(_same_text(str(file.get("content")), rules) for file in files):
        yield ok("rules", "The deployed rules are those of this version.")
    elif any(rules.strip() in str(file.get("content")) for file in files):
        yield ok("rules", "The deployed rules contain those of this version.")
    else:
        sentence = "The deployed rules differ from firestore.rules of this version."
        fix = f"{DEPLOY_FIRESTORE}; if the project has rules of its own, add ours to them first"
        yield Check(name="rules", verdict=Verdict.WARNING, sentence=sentence, fix=fix)


def _same_text(one: str, other: str) -> bool:
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]


def _scheduler(facts: Facts) -> Iterator[Check]:
    fix = "deploy/schedule.sh"
    if not isinstance(facts.job, Answer):
        sentence = f"There is no job outbox-sweep in {facts.location}: what an event lost is never found."
        yield from not_there("scheduler", facts.job, sentence, fix)
        return
    job = facts.job.content
    code = (job.get("status") or {}).get("code", 0)
    audience = ((job.get("httpTarget") or {}).get("oidcToken") or {}).get("audience")
    if job.get("state") != "ENABLED":
        resume = f"gcloud scheduler jobs resume outbox-sweep --location={facts.location} --project={facts.project}"
        yield broken("scheduler", f"The job outbox-sweep is {job.get('state')}.", resume)
    elif facts.worker_url and audience != facts.worker_url:
        sentence = f"The job's token is for {audience}, and the worker is {facts.worker_url}: the worker refuses it."
        yield broken("scheduler", sentence, fix)
    elif code:
        sentence = f"The last sweep failed (code {code}, at {job.get('lastAttemptTime')})."
        logs = 'gcloud logging read "resource.type=cloud_scheduler_job" --limit=5'
        yield Check(name="scheduler", verdict=Verdict.WARNING, sentence=sentence, fix=logs)
    else:
        yield ok("scheduler", f"outbox-sweep runs at {job.get('schedule')!r}.")


def _worker(facts: Facts) -> Iterator[Check]:
    fix = "deploy/worker.sh IMAGE"
    if not isinstance(facts.worker, Answer):
        yield from not_there("worker", facts.worker, f"There is no service outbox-worker in {facts.location}.", fix)
        return
    condition = facts.worker.content.get("terminalCondition") or {}
    if condition.get("state") == "CONDITION_SUCCEEDED":
        yield ok("worker", "The service outbox-worker is ready.")
    else:
        sentence = f"The service outbox-worker is not ready: {condition.get('message') or condition.get('state')}"
        yield broken("worker", sentence, f"correct the cause, then run {fix}")


def _service_accounts(facts: Facts) -> Iterator[Check]:
    found = facts.service_accounts
    absent = [name for name, fact in found.items() if isinstance(fact, Absent)]
    off = [name for name, fact in found.items() if isinstance(fact, Answer) and fact.content.get("disabled")]
    refused = [fact.reason for fact in found.values() if isinstance(fact, Refused)]
    if absent:
        yield broken("service accounts", f"Missing: {', '.join(absent)}.", DEPLOY_PROJECT)
    for name in off:
        email = f"{name}@{facts.project}.iam.gserviceaccount.com"
        yield broken("service accounts", f"{name} is disabled.", f"gcloud iam service-accounts enable {email}")
    if refused:
        yield unknown("service accounts", refused[0])
    if not absent and not off and not refused:
        yield ok("service accounts", f"All {len(found)} exist.")


def _secrets(facts: Facts) -> Iterator[Check]:
    for fact in (facts.secrets, facts.accounts):
        if isinstance(fact, Refused):
            yield unknown("secrets", fact.reason)
            return
    secrets = facts.secrets.content.get("secrets", ()) if isinstance(facts.secrets, Answer) else ()
    documents = facts.accounts.content.get("documents", ()) if isinstance(facts.accounts, Answer) else ()
    known = {str(one.get("name")).rpartition("/")[2] for one in secrets}
    accounts = [str(one.get("name")).rpartition("/")[2] for one in documents]
    missing = [account for account in accounts if SECRET_PREFIX + account not in known]
    for account in missing:
        fix = f"outbox accounts add {account} --replace"
        yield broken("secrets", f"The account {account} has no secret {SECRET_PREFIX}{account}.", fix)
    if not accounts:
        sentence, fix = "There is no account yet.", "outbox accounts add"
        yield Check(name="secrets", verdict=Verdict.WARNING, sentence=sentence, fix=fix)
    elif not missing:
        yield ok("secrets", f"Each of {len(accounts)} accounts has its secret.")
