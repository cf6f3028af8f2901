"""docs/data-model.md as data, and the field names in the code that writes documents.

Like tests/docs/api.py it reads source code and imports nothing of the product.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.docs.snippets import ROOT

PACKAGE = ROOT / "worker/firestore_outbox"
PAGE = ROOT / "docs/data-model.md"
TYPES = ("string", "integer", "number", "boolean", "timestamp", "list", "map")

OUTBOX = "outbox/{requestId}"
CANCELS = "cancels/{requestId}"
THREADS = "threads/{threadId}"
MESSAGES = "threads/{threadId}/messages/{messageId}"
ACCOUNTS = "accounts/{accountId}"
MEMBERS = "accounts/{accountId}/members/{uid}"
ACTIONS = "accounts/{accountId}/actions/{actionId}"
KEYS = "accounts/{accountId}/keys/{version}"
BILLING = "accounts/{accountId}/billing/state"
CUSTOMERS = "billingCustomers/{customerId}"
SESSION_SHOWN = "accounts/{accountId}/session/current"
CONTACTS = "accounts/{accountId}/contacts/{address}"
SESSION_CODE = "accounts/{accountId}/session/qr"
GLOBAL_ACTIONS = "actions/{actionId}"
UPLOADS = "accounts/{accountId}/uploads/{mediaId}"
INCOMING = "accounts/{accountId}/incoming/{mediaId}"
FETCHES = "accounts/{accountId}/fetches/{messageId}"
NOTIFICATIONS = "accounts/{accountId}/notifications/{notificationId}"
DEVICES = "accounts/{accountId}/devices/{deviceId}"
REMINDERS = "reminders/{reminderId}"
TARGETS = "reminders/{reminderId}/targets/{number}"
RUNS = "runs/{runId}"
LANES = "lanes/{kind}:{key}"
LIMITS = "limits/{name}"
SUPPRESSED = "accounts/{accountId}/suppressed/{address}"
FREQUENCY = "accounts/{accountId}/frequency/{address}"
RUN_REQUESTS = "runs/{runId}/requests/{requestId}"
REMINDER_REQUESTS = "reminders/{reminderId}/requests/{requestId}"
SHARDS = "limits/{name}/shards/{number}"
PRESSURE = "pressure/{kind}"
EVENTS = "inbox/{kind}:{key}/events/{eventId}"
JOBS = "jobs/{jobId}"
HOT_SETS = "hotsets/{name}"
SESSIONS = "sessions/{accountId}"
MIGRATIONS = "migrations/{name}"
SWEEPS = "sweeps/{step}"

WRITERS: Mapping[str, tuple[str, ...]] = {
    # The outbox document, its message and its thread
    "messages/validation.py:_Document": (OUTBOX,),
    "messages/validation.py:_Error": (OUTBOX, ACCOUNTS, UPLOADS),
    "messages/validation.py:_Window": (OUTBOX,),
    "messages/outbox_document.py:refusal": (OUTBOX,),
    "messages/outbox_document.py:skipped_fields": (OUTBOX,),
    "messages/outbox_document.py:rewritten": (OUTBOX,),
    "messages/outbox_document.py:error_fields": (OUTBOX, ACCOUNTS, UPLOADS),
    "messages/outbox_document.py:_fields": (OUTBOX,),
    "messages/enqueue.py:_with_time_asked_for": (OUTBOX,),
    "messages/new_documents.py:identity_fields": (OUTBOX, MESSAGES),
    "messages/new_documents.py:outbox_fields": (OUTBOX,),
    "messages/new_documents.py:message_fields": (MESSAGES,),
    "messages/new_documents.py:thread_fields": (THREADS,),
    "messages/message_document.py:followed": (MESSAGES,),
    "messages/message_document.py:first_shown": (MESSAGES,),
    "messages/message_document.py:shown_fields": (MESSAGES,),
    "messages/message_document.py:shown_again": (MESSAGES,),
    "messages/message_document.py:shown_refusals": (MESSAGES,),
    "messages/message_document.py:receipt_changes": (MESSAGES,),
    "inbound/receive.py:Receive.store": (MESSAGES, THREADS),
    "backend/batch.py:cancel_message": (OUTBOX, CANCELS),
    # Accounts
    "accounts/account.py:AccountSettings": (ACCOUNTS,),
    "accounts/account.py:Pace": (ACCOUNTS,),
    "accounts/account.py:Hours": (ACCOUNTS,),
    "accounts/account.py:Notify": (ACCOUNTS,),
    "notifications/notification.py:OfRun.fields": (NOTIFICATIONS,),
    "accounts/devices.py:_Document": (DEVICES,),
    "notifications/progress.py:progress_fields": (NOTIFICATIONS,),
    "notifications/progress.py:_device_fields": (NOTIFICATIONS,),
    "accounts/store.py:AccountStore.park": (ACCOUNTS,),
    "accounts/store.py:AccountStore.pause": (ACCOUNTS,),
    "accounts/store.py:AccountStore.resume": (ACCOUNTS,),
    "accounts/administration.py:Administration.set_member": (ACCOUNTS, MEMBERS, ACTIONS),
    "accounts/administration.py:Administration.noted": (ACTIONS, GLOBAL_ACTIONS),
    "accounts/members.py:member_fields": (MEMBERS,),
    "web/console/app.py:Shell._done": (ACTIONS, GLOBAL_ACTIONS),
    "cli/accounts.py:_write": (ACCOUNTS, MEMBERS),
    "media/store.py:_fields": (UPLOADS,),
    "media/intake.py:Intake.start": (INCOMING,),
    "inbound/arriving.py:fields_of": (FETCHES,),
    "inbound/fetch.py:FetchHandler._settle": (FETCHES, MESSAGES),
    "sealing/keys.py:Keys._add": (ACCOUNTS, KEYS),
    "sealing/keys.py:Keys.delete": (ACCOUNTS, KEYS),
    "accounts/account.py:OptOut": (ACCOUNTS,),
    "accounts/account.py:FallbackTemplate": (ACCOUNTS,),
    "billing/books.py:Book.reported": (BILLING,),
    "billing/books.py:Books.begun": (BILLING,),
    "billing/books.py:Books.bind": (BILLING, CUSTOMERS),
    "billing/books.py:_fields": (BILLING,),
    "billing/billing.py:_fields": (ACCOUNTS,),
    "consent/suppressions.py:Suppressions.add": (SUPPRESSED, ACCOUNTS),
    "consent/frequency_store.py:_fields": (FREQUENCY,),
    "accounts/account.py:Frequency": (ACCOUNTS,),
    "accounts/account.py:WarmUpSettings": (ACCOUNTS,),
    "accounts/account.py:Refusals": (ACCOUNTS,),
    "reminders/store.py:judged_fields": (RUNS,),
    # Reminders and runs
    "reminders/reminder.py:_Document": (REMINDERS,),
    "reminders/reminder.py:_Hours": (REMINDERS,),
    "reminders/targets.py:_Target": (REMINDERS, TARGETS),
    "reminders/reminder.py:Once": (REMINDERS,),
    "reminders/reminder.py:Cron": (REMINDERS,),
    "reminders/reminder.py:Recurrence": (REMINDERS,),
    "reminders/add.py:Remind._add": (REMINDERS,),
    "reminders/fire.py:ReminderHandler._turn": (REMINDERS,),
    "reminders/store.py:RunStore.add_reminder": (REMINDERS,),
    "reminders/store.py:RunStore.complete_reminder": (REMINDERS,),
    "reminders/store.py:RunStore._write_chunks": (TARGETS,),
    "reminders/check.py:_target_fields": (REMINDERS, TARGETS),
    "reminders/change.py:ChangeReminder.status_step": (REMINDERS,),
    "reminders/change.py:ChangeReminder._write": (REMINDERS,),
    "reminders/edit.py:edited": (REMINDERS,),
    "reminders/fire.py:ReminderHandler._cannot_fire": (REMINDERS,),
    "reminders/request_store.py:RequestStore.announce": (REMINDERS, RUNS),
    "reminders/requests.py:_Document": (RUN_REQUESTS, REMINDER_REQUESTS),
    "reminders/request_store.py:outcome_of": (RUN_REQUESTS, REMINDER_REQUESTS),
    "reminders/asked.py:AskedOfRuns.apply_next": (RUNS,),
    "reminders/store.py:RunStore.fire": (REMINDERS,),
    "reminders/store.py:forecast_fields": (REMINDERS, RUNS),
    "reminders/store.py:_created": (RUNS,),
    "reminders/store.py:cursor_fields": (RUNS,),
    "reminders/store.py:count_fields": (RUNS,),
    "reminders/store.py:rate_fields": (RUNS,),
    "reminders/refresh.py:Refresh.__call__": (RUNS,),
    "reminders/refresh.py:Refresh.counted": (RUNS,),
    "reminders/refresh.py:Refresh._judged": (RUNS,),
    "reminders/run_lane.py:RunHandler._paused": (RUNS,),
    "reminders/expand.py:Expand._commit": (RUNS,),
    "reminders/expand.py:_window_fields": (OUTBOX,),
    "reminders/expand.py:_hours_fields": (OUTBOX,),
    "reminders/run_lane.py:RunHandler._step": (RUNS,),
    "reminders/run_lane.py:RunHandler._go_on_next_day": (RUNS,),
    "reminders/summary.py:Summary.end": (RUNS,),
    "reminders/control.py:Control.ask": (RUNS,),
    # Lanes, limits, handlers, sessions
    "lane/store.py:_fields": (LANES,),
    "lane/store.py:place_fields": (LANES,),
    "lane/store.py:_cursor": (LANES,),
    "lane/store.py:_holds": (LANES,),
    "lane/app_throttle_store.py:AppThrottleStore.pause": (LIMITS,),
    "accounts/store.py:SharedLimit._moved": (LIMITS,),
    "limits/store.py:LimitStore.reserve": (SHARDS,),
    "limits/store.py:LimitStore.throttle": (SHARDS,),
    "handlers/pressure_store.py:PressureStore.report": (PRESSURE,),
    "handlers/events.py:EventStore.add": (EVENTS,),
    "backend/poke.py:poke": (EVENTS,),
    "handlers/dead_letters.py:DeadLetters.add": (JOBS,),
    "sessions/store.py:_hot_writes": (HOT_SETS,),
    "sessions/store.py:_entry_fields": (HOT_SETS,),
    "sessions/store.py:_waiting_fields": (HOT_SETS,),
    "sessions/store.py:_memory_fields": (SESSIONS,),
    "sessions/store.py:_dropped": (SESSIONS,),
    "sessions/store.py:_shown_writes": (SESSION_SHOWN,),
    "sessions/store.py:_contact": (CONTACTS,),
    "sessions/store.py:SessionStore.show_code": (SESSION_CODE,),
    "operations/migrations/apply.py:Applying._note": (MIGRATIONS,),
    "operations/sweep_cursors.py:LanesCursor.write": (SWEEPS,),
    "operations/sweep_cursors.py:SweepCursors.keep_accounts": (SWEEPS,),
}
"""The functions and models that name the fields of documents, each with the documents."""

PASS_ON = {
    "messages/cancel.py": "deletes a cancel that is granted",
    "messages/shown_store.py": "writes what messages/outbox_document.py and messages/message_document.py make",
    "messages/store.py": "writes what messages/outbox_document.py and messages/message_document.py make",
    "sending/complete.py": "the same",
    "sending/refuse.py": "the same",
    "reminders/withdraw.py": "the same",
    "operations/migrations/provider_number.py": "removes or sets providerNumber, a field of the account's model",
    "operations/migrations/lane_shard.py": "removes or sets the place of a lane, which lane/store.py names",
    "operations/erase.py": "deletes",
    "operations/retain.py": "deletes",
    "notifications/handler.py": "writes what notifications/progress.py makes",
    "cli/demo.py": "accounts of the demo, which lives for a minute",
}
"""Modules that write documents and name no fields of their own."""


@dataclass(frozen=True, slots=True)
class Row:
    type: str
    written_by: str


def documented() -> dict[str, dict[str, Row]]:
    """Each document's fields, by their paths: `lastError.code`."""
    found: dict[str, dict[str, Row]] = {}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = re.match(r"`(.+)`\n", section)
        if heading:
            rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \| ([^|]+) \| .*\|$", section, re.MULTILINE)
            found[heading[1]] = {name: Row(kind, by.strip()) for name, kind, by in rows}
    return found


def names_of(fields: Mapping[str, Row]) -> set[str]:
    """Each name in the paths: `lastError` and `code`. The code names the fields of a map by themselves."""
    return {part for path in fields for part in path.split(".")}


def named_in_code(place: str) -> set[str]:
    """The field names that a function writes or a model has."""
    file, _, name = place.partition(":")
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    node: ast.AST = tree
    for part in name.split("."):
        node = next(one for one in ast.walk(node) if isinstance(one, _DEFINITIONS) and one.name == part)
    constants = {
        target.id: one.value.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
        for target in one.targets
        if isinstance(target, ast.Name) and isinstance(one.value.value, str)
    }
    if isinstance(node, ast.ClassDef):
        annotated = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
        return {target.id for target in annotated if isinstance(target, ast.Name)}
    return {constants.get(key, key) for key in _keys(node)}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _keys(node: ast.AST) -> Iterator[str]:
    """The keys of every dictionary that is written out, and of `fields["name"] = …`."""
    for one in ast.walk(node):
        if isinstance(one, ast.Dict):
            yield from (_key(key) for key in one.keys if isinstance(key, ast.Constant | ast.Name))
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    yield _key(target.slice)


def _key(node: ast.Constant | ast.Name) -> str:
    return node.id if isinstance(node, ast.Name) else str(node.value)


def modules_that_write() -> set[str]:
    """Modules of the product that make writes, below the package."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        module = str(file.relative_to(PACKAGE))
        if module.startswith(("local/", "firestore/")):
            continue
        source = file.read_text(encoding="utf-8")
        if re.search(r"firestore\.writes import|batch\.(create|set|update)\(", source):
            found.add(module)
    return found
