"""What calls the outbox's code in a project: the queues of Cloud Tasks, and the functions with their triggers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox.operations.doctor_facts import (
    Answer,
    Check,
    Fact,
    Facts,
    Verdict,
    broken,
    not_there,
    ok,
    settings_of,
)

LONGEST_BACKOFF_SECONDS = 300.0
"""Above this, a task that failed sleeps longer than the sweep's next rounds. Google's default is an hour."""
DEPLOY_QUEUE, DEPLOY_FUNCTIONS = "deploy/queue.sh", "deploy/functions.sh"
RETRIES = "RETRY_POLICY_RETRY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    """As it is deployed."""
    documents: str = ""
    """The pattern of the documents whose creation calls it; empty if HTTP does."""
    without: str
    """What does not work without it."""
    needed_by: tuple[str, ...] = ()
    """Settings of the worker; if none of them is set, the function is not needed. Empty: every project needs it."""


FUNCTIONS: Mapping[str, Function] = {
    "on_outbox_created": Function(
        name="outbox-on-created",
        documents="outbox/{requestId}",
        without="a message waits for the next sweep",
    ),
    "on_cancel_created": Function(
        name="outbox-on-cancel", documents="cancels/{requestId}", without="a cancelled message waits for its lane"
    ),
    "on_reminder_created": Function(
        name="outbox-on-reminder", documents="reminders/{reminderId}", without="reminders that apps write do not start"
    ),
    "on_request_created": Function(
        name="outbox-on-request",
        documents="{collection}/{id}/requests/{requestId}",
        without="what apps ask of runs and reminders is not done",
    ),
    "provider_webhook": Function(name="outbox-webhook", without="receipts and replies do not arrive"),
    "enqueue": Function(name="outbox-enqueue", without="POST /v1/messages is not answered"),
    "reminders": Function(name="outbox-reminders", without="/v1/reminders is not answered"),
    "runs": Function(name="outbox-runs", without="/v1/runs is not answered"),
    "accounts": Function(name="outbox-accounts", without="/v1/accounts is not answered"),
    "files": Function(name="outbox-files", without="apps can neither upload files nor show them"),
    "on_event_created": Function(
        name="outbox-on-event",
        documents="inbox/{lane}/events/{eventId}",
        without="events that apps write do not run your handlers",
        needed_by=("OUTBOX_HANDLERS", "OUTBOX_HANDLER_URL"),
    ),
    "events": Function(name="outbox-events", without="POST /v1/events is not answered", needed_by=("OUTBOX_EVENTS",)),
    "open_messages": Function(
        name="outbox-open", without="apps cannot open sealed messages", needed_by=("OUTBOX_KMS_KEY",)
    ),
    "billing_webhook": Function(
        name="outbox-billing", without="what owners pay changes no plan", needed_by=("OUTBOX_BILLING_PRICES",)
    ),
}
"""Entry point -> the function that deploy/functions.sh makes of it. The sweep is the scheduler's check."""


def examine_queues(facts: Facts) -> Iterator[Check]:
    found = [check for queue, fact in facts.queues.items() for check in _queue(facts, queue, fact)]
    yield from found
    if not found:
        verb = "is" if len(facts.queues) == 1 else "are"
        yield ok("queue", f"{', '.join(facts.queues)} in {facts.location} {verb} running.")


def _queue(facts: Facts, queue: str, fact: Fact) -> Iterator[Check]:
    """Nothing if the queue is in order."""
    if not isinstance(fact, Answer):
        sentence = f"There is no queue {queue} in {facts.location}: its tasks do not reach the worker."
        yield from not_there("queue", fact, sentence, DEPLOY_QUEUE)
        return
    state = fact.content.get("state")
    backoff = _seconds((fact.content.get("retryConfig") or {}).get("maxBackoff"))
    if state != "RUNNING":
        resume = f"gcloud tasks queues resume {queue} --location={facts.location} --project={facts.project}"
        yield broken("queue", f"The queue {queue} is {state}: its tasks do not reach the worker.", resume)
    elif backoff is not None and backoff > LONGEST_BACKOFF_SECONDS:
        sentence = f"A task of {queue} that failed waits up to {backoff:g} s, and its lane with it."
        yield Check(name="queue", verdict=Verdict.WARNING, sentence=sentence, fix=DEPLOY_QUEUE)


def _seconds(duration: Any) -> float | None:
    """Of a JSON duration such as `3.5s`."""
    text = str(duration or "")
    try:
        return float(text.removesuffix("s")) if text.endswith("s") else None
    except ValueError:
        return None


def examine_functions(facts: Facts) -> Iterator[Check]:
    if not isinstance(facts.functions, Answer):
        sentence = f"There are no functions in {facts.location}."
        yield from not_there("functions", facts.functions, sentence, DEPLOY_FUNCTIONS)
        return
    deployed = {str(one.get("name")).rpartition("/")[2]: one for one in facts.functions.content.get("functions", ())}
    settings = settings_of(facts.worker)
    needed = {
        entry: function
        for entry, function in FUNCTIONS.items()
        if not function.needed_by or any(settings.get(name) for name in function.needed_by)
    }
    found = [check for entry, function in needed.items() for check in _function(facts, entry, function, deployed)]
    yield from found
    if not found:
        yield ok("functions", f"All {len(needed)} are active, with their triggers.")


def _function(
    facts: Facts, entry: str, function: Function, deployed: Mapping[str, Mapping[str, Any]]
) -> Iterator[Check]:
    """Nothing if the function is in order."""
    fix = f"{DEPLOY_FUNCTIONS} {entry}"
    one = deployed.get(function.name)
    if one is None:
        yield broken("functions", f"There is no function {function.name}: {function.without}.", fix)
        return
    if one.get("state") == "DEPLOYING":
        sentence = f"{function.name} is being deployed."
        yield Check(name="functions", verdict=Verdict.WAIT, sentence=sentence, fix="wait, and run outbox doctor again")
        return
    if one.get("state") != "ACTIVE":
        reasons = [str(message.get("message")) for message in one.get("stateMessages", ())]
        why = f" ({reasons[0]})" if reasons else ""
        yield broken("functions", f"{function.name} is {one.get('state')}{why}: {function.without}.", fix)
        return
    if not function.documents:
        return
    trigger = one.get("eventTrigger") or {}
    filters = {str(each.get("attribute")): str(each.get("value")) for each in trigger.get("eventFilters", ())}
    wanted = {"database": facts.database_id, "document": function.documents}
    if {name: filters.get(name) for name in wanted} != wanted:
        listens = f"{filters.get('document')} of {filters.get('database')}" if filters else "nothing"
        sentence = f"{function.name} listens to {listens}, not to {function.documents} of {facts.database_id}"
        yield broken("functions", f"{sentence}: {function.without}.", f"gcloud functions delete {function.name}; {fix}")
    elif trigger.get("retryPolicy") != RETRIES:
        sentence = f"{function.name} does not retry: an event that fails once is lost, and {function.without}."
        yield Check(name="functions", verdict=Verdict.WARNING, sentence=sentence, fix=fix)
