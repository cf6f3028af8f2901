"""One named function for each event worth a line. Each line is JSON, as Cloud Logging reads it, with a stable `action`
and the `accountId` that the event is about: null where it is about none, or about all of them.

No text of a message, no address of a person, no provider's URL and no credential is ever logged: what a line quotes
goes through log_safety.py. What libraries log is reduced in the same way, and only from WARNING on: httpx logs
every URL that it calls, with the tokens that some providers want in it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import Any

from firestore_outbox.log_safety import error_shown, lane_shown, masked, place_in, trace_of

_log = logging.getLogger("outbox")

Logger = logging.Logger
HANDLERS = _log.getChild("handlers")
"""For the user's code. Its lines are masked as those of libraries are."""

TALKATIVE = ("httpx", "httpcore", "urllib3", "hpack")
"""Libraries that log addresses and headers of each call. Quiet from the import of this module on, in every process."""
for _name in TALKATIVE:
    logging.getLogger(_name).setLevel(logging.WARNING)


class _OursOrImportant(logging.Filter):
    """Lines of libraries count from WARNING on, also if OUTBOX_LOG_LEVEL is DEBUG."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_ours = record.name == _log.name or record.name.startswith(f"{_log.name}.")
        return is_ours or record.levelno >= logging.WARNING


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        line: dict[str, Any] = {"severity": record.levelname}
        if fields is None:
            line |= {"message": _of_library(record), "action": "library", "accountId": None, "logger": record.name}
        else:
            line |= {"message": record.getMessage(), "accountId": None, **fields}
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = trace_of(record.exc_info[1])
        return json.dumps(line, default=str)


def _of_library(record: logging.LogRecord) -> str:
    """The first line, and the lines of code below it: what stands between them are an exception's words."""
    first, *others = record.getMessage().splitlines() or [""]
    code = [line.strip() for line in others if line.startswith('  File "')]
    return "\n".join([masked(first), *code])


def configure(level: str = "INFO") -> None:
    """The whole process: one JSON line for each event on standard error."""
    logging.basicConfig(level=level, handlers=[_made_ours(logging.StreamHandler(sys.stderr))], force=True)


def configure_beside(level: str = "INFO") -> None:
    """In a process that another program serves: its own handlers stay, and those without a form write our lines."""
    root = logging.getLogger()
    if not root.handlers:
        configure(level)
        return
    for handler in root.handlers:
        if handler.formatter is None:
            _made_ours(handler)
            root.setLevel(level)


def _made_ours(handler: logging.Handler) -> logging.Handler:
    handler.setFormatter(_JsonLines())
    handler.addFilter(_OursOrImportant())
    return handler


def _line(
    level: int, action: str, message: str, account_id: str | None, error: BaseException | None = None, **fields: object
) -> None:
    if _log.isEnabledFor(level):
        trace = {} if error is None else {"exception": trace_of(error)}
        named = {"action": action, "accountId": account_id, **fields, **trace}
        _log.log(level, message, extra={"fields": named})


# --- lanes


def lane_acquired(lane: object, account_id: str | None, entry: str, fence: int) -> None:
    shown = lane_shown(lane)
    _line(logging.DEBUG, "lane_acquired", "a lane was acquired", account_id, lane=shown, entry=entry, fence=fence)


def lane_released(lane: object, account_id: str | None, how: str, at: object) -> None:
    _line(logging.DEBUG, "lane_released", "a lane was released", account_id, lane=lane_shown(lane), how=how, at=at)


def lane_lost(lane: object, account_id: str | None, fence: int) -> None:
    message = "a lane was lost to another holder"
    _line(logging.WARNING, "lane_lost", message, account_id, lane=lane_shown(lane), fence=fence)


def lane_failed(
    lane: object, account_id: str | None, error: BaseException, *, failures: int | None, retry_at: object
) -> None:
    """`failures` in a row; None: they could not be counted, and the lane's lease ends by itself."""
    message = "a lane's handler failed; it is tried again later"
    shown = lane_shown(lane)
    _line(logging.ERROR, "lane_failed", message, account_id, error, lane=shown, failures=failures, retryAt=retry_at)


def lane_crowded(lane: object, account_id: str | None, threads: int) -> None:
    message = "too many threads wait for a retry: the lane takes no others"
    _line(logging.WARNING, "lane_crowded", message, account_id, lane=lane_shown(lane), threads=threads)


def claim_conflict(lane: object, account_id: str | None, count: int) -> None:
    message = "documents changed before they were claimed"
    _line(logging.INFO, "claim_conflict", message, account_id, lane=lane_shown(lane), count=count)


def visible_late(
    lane: object, account_id: str | None, request_id: str, gap_seconds: float, overlap_seconds: float
) -> None:
    _line(
        logging.WARNING,
        "visible_late",
        "a document became visible long after its server timestamp: OUTBOX_OVERLAP_SECONDS may be too short",
        account_id,
        lane=lane_shown(lane),
        requestId=request_id,
        gapSeconds=gap_seconds,
        overlapSeconds=overlap_seconds,
    )


# --- messages and accounts


def attempt_ended(
    account_id: str, request_id: str, outcome: str, status: str, *, code: str | None, again_at: datetime | None
) -> None:
    """`code` is the error's; `again_at` says when a message that is still queued is tried again."""
    _line(
        logging.DEBUG,
        "attempt_ended",
        "an attempt ended",
        account_id,
        requestId=request_id,
        outcome=outcome,
        status=status,
        code=code,
        againAt=again_at,
    )


def message_refused(account_id: str | None, request_id: str, sentence: str) -> None:
    """The sentence quotes the document; the line names the field. The document's `lastError` has the sentence."""
    message = "a malformed outbox document"
    _line(logging.WARNING, "message_refused", message, account_id, requestId=request_id, field=place_in(sentence))


def account_unusable(account_id: str, sentence: str) -> None:
    _line(logging.ERROR, "account_unusable", "an account cannot send", account_id, reason=masked(sentence))


def account_parked(account_id: str, reason: str) -> None:
    _line(logging.ERROR, "account_parked", "the provider refuses the account", account_id, reason=masked(reason))


def adapter_failed(
    account_id: str, error: Exception, *, request_id: str | None = None, media_id: str | None = None
) -> None:
    """While sending, or while uploading a file."""
    about = {"requestId": request_id} if media_id is None else {"mediaId": media_id}
    _line(logging.ERROR, "adapter_failed", "an adapter failed", account_id, error, **about)


def credentials_unavailable(account_id: str, error: Exception) -> None:
    message, reason = "the credentials of an account cannot be read", masked(str(error)) or error_shown(error)
    _line(logging.ERROR, "credentials_unavailable", message, account_id, reason=reason)


def key_unavailable(account_id: str, error: Exception) -> None:
    message, reason = "the key of a sealed message cannot be had", masked(str(error)) or error_shown(error)
    _line(logging.ERROR, "key_unavailable", message, account_id, reason=reason)


def billing_changed(account_id: str, plan: str, until: datetime | None) -> None:
    _line(logging.INFO, "billing_changed", "what is paid changed an account's plan", account_id, plan=plan, until=until)


def billing_refused(reason: str) -> None:
    message = "an event that is said to be Stripe's was refused"
    _line(logging.WARNING, "billing_refused", message, None, reason=masked(reason))


def billing_customer_unknown(customer: str) -> None:
    message = "an event is about a customer that no account has"
    _line(logging.WARNING, "billing_customer_unknown", message, None, customer=masked(customer))


def billing_price_unknown(account_id: str, price: str) -> None:
    message = "an account pays a price that buys no plan"
    _line(logging.ERROR, "billing_price_unknown", message, account_id, price=masked(price))


def billing_unavailable(account_id: str | None, error: Exception) -> None:
    message, reason = "Stripe or Firestore cannot be used for billing", masked(str(error)) or error_shown(error)
    _line(logging.ERROR, "billing_unavailable", message, account_id, reason=reason)


def credentials_stale(account_id: str, error: Exception) -> None:
    message = "an older copy of an account's credentials is used"
    _line(logging.WARNING, "credentials_stale", message, account_id, reason=masked(str(error)))


def unknown_accounts_limited() -> None:
    """At most once a minute."""
    message = "webhooks name many accounts that have no secret; unknown names are not looked up for now"
    _line(logging.WARNING, "unknown_accounts_limited", message, None)


# --- files


def media_uploaded(account_id: str, media_id: str, size_bytes: int, seconds: float) -> None:
    message = "a file was uploaded"
    took = round(seconds, 1)
    _line(logging.INFO, "media_uploaded", message, account_id, mediaId=media_id, bytes=size_bytes, seconds=took)


def media_not_uploaded(account_id: str, media_id: str, detail: str) -> None:
    message = "a file was not uploaded"
    _line(logging.WARNING, "media_not_uploaded", message, account_id, mediaId=media_id, reason=masked(detail))


def media_handle_refused(account_id: str, media_id: str) -> None:
    message = "the provider refused the handle of a file"
    _line(logging.WARNING, "media_handle_refused", message, account_id, mediaId=media_id)


def inbound_files_stored(account_id: str, message_id: str, files: int) -> None:
    message = "the files of an inbound message were stored"
    _line(logging.INFO, "inbound_files_stored", message, account_id, messageId=message_id, files=files)


def inbound_files_missing(account_id: str, message_id: str, reason: str) -> None:
    message = "a file of an inbound message could not be had"
    told = masked(reason)
    _line(logging.WARNING, "inbound_files_missing", message, account_id, messageId=message_id, reason=told)


def notification_delivered(account_id: str, notification_id: str, attempts: int, *, device_id: str | None) -> None:
    """`device_id`: a device of a member; None: the account's webhook."""
    message = f"{_receiver(device_id)} accepted a notification"
    _line(
        logging.INFO,
        "notification_delivered",
        message,
        account_id,
        notificationId=notification_id,
        attempts=attempts,
        deviceId=device_id,
    )


def notification_not_accepted(
    account_id: str, notification_id: str, attempts: int, reason: str, *, given_up: bool, device_id: str | None
) -> None:
    message = f"{_receiver(device_id)} did not accept a notification"
    _line(
        logging.ERROR if given_up else logging.WARNING,
        "notification_not_accepted",
        message,
        account_id,
        notificationId=notification_id,
        attempts=attempts,
        reason=masked(reason),
        givenUp=given_up,
        deviceId=device_id,
    )


def device_removed(account_id: str, device_id: str, reason: str) -> None:
    message = "a device cannot get notifications any more, and was removed"
    _line(logging.INFO, "device_removed", message, account_id, deviceId=device_id, reason=masked(reason))


def _receiver(device_id: str | None) -> str:
    return "the account's webhook" if device_id is None else "a member's device"


def storage_unavailable(account_id: str, error: Exception) -> None:
    message = "the storage of files cannot be used"
    _line(logging.ERROR, "storage_unavailable", message, account_id, reason=masked(str(error)))


# --- what providers tell


def receipt_ignored(account_id: str, request_id: str | None, because: str) -> None:
    message = "a receipt changed nothing"
    _line(logging.DEBUG, "receipt_ignored", message, account_id, requestId=request_id, because=because)


def receipt_unmatched(account_id: str, provider_message_id: str | None) -> None:
    message = "a receipt for a message we do not know; it is looked at again"
    _line(logging.INFO, "receipt_unmatched", message, account_id, providerMessageId=_masked_id(provider_message_id))


def receipt_dropped(account_id: str, provider_message_id: str | None, request_id: str | None) -> None:
    _line(
        logging.WARNING,
        "receipt_dropped",
        "a receipt for a message that never came to be known",
        account_id,
        providerMessageId=_masked_id(provider_message_id),
        requestId=request_id,
    )


def webhook_event_unusable(account_id: str, kind: str, reason: str, count: int = 1) -> None:
    """`reason` is the first one's."""
    message = "events of a genuine webhook were left out"
    shown = masked(reason)
    _line(logging.WARNING, "webhook_event_unusable", message, account_id, kind=kind, reason=shown, count=count)


def webhook_number_unknown(account_id: str, provider: str, number: str, count: int) -> None:
    """`account_id` is the account of the webhook's path, `number` the first that is unknown: the provider's id of a
    number, not the phone number itself."""
    message = (
        "events were dropped: no account has this providerNumber, or several have it"
        if number
        else "events were dropped: they name no receiving number"
    )
    _line(
        logging.WARNING,
        "webhook_number_unknown",
        message,
        account_id,
        provider=provider,
        number=number,
        count=count,
    )


def webhook_put_off(account_id: str, error: BaseException) -> None:
    message = "a webhook could not be taken; its provider sends it again"
    _line(logging.ERROR, "webhook_put_off", message, account_id, reason=error_shown(error))


# --- sessions


def session_changed(account_id: str, connected: bool, woken: bool) -> None:
    message = "an account's session came up" if connected else "an account's session went down"
    _line(logging.INFO, "session_changed", message, account_id, woken=woken)


def session_seen(account_id: str, state: str, seen: str) -> None:
    message = "a session was looked at, or ordered up or down"
    _line(logging.INFO, "session_seen", message, account_id, state=state, seen=seen)


def session_troubled(account_id: str, trouble: str, retry_at: datetime | None) -> None:
    message = "a session is not up"
    _line(logging.WARNING, "session_troubled", message, account_id, trouble=trouble, retryAt=retry_at)


def session_not_stopped(account_id: str) -> None:
    message = "a session could not be stopped in time, and may still be up"
    _line(logging.ERROR, "session_not_stopped", message, account_id)


def hot_set_contended(account_id: str) -> None:
    message = "the hot set is written by too many at once"
    _line(logging.WARNING, "hot_set_contended", message, account_id)


# --- tasks and the sweep


def sweep_found(lanes: int, accounts: int) -> None:
    level = logging.WARNING if lanes or accounts else logging.DEBUG
    _line(level, "sweep_found", "the sweep woke what was dropped", None, lanes=lanes, accounts=accounts)


def sweep_failed(step: str, error: BaseException) -> None:
    message = "a step of the sweep failed; the next sweep repeats it"
    _line(logging.ERROR, "sweep_failed", message, None, error, step=step)


def retention_deleted(account_id: str, messages: int, threads: int) -> None:
    message = "messages and threads that the account keeps no longer were deleted"
    _line(logging.INFO, "retention_deleted", message, account_id, messages=messages, threads=threads)


def pull_failed(step: str, error: BaseException) -> None:
    message = "a step of a pulling worker failed; the worker continues"
    _line(logging.ERROR, "pull_failed", message, None, error, step=lane_shown(step))


def bad_task(reason: str, account_id: str | None = None) -> None:
    message = "a task that no retry can repair was dropped"
    _line(logging.ERROR, "bad_task", message, account_id, reason=masked(reason))


# --- your code on a lane


def event_taken(lane: object, account_id: str | None, is_new: bool) -> None:
    _line(
        logging.INFO, "event_taken", "an event waits for its handler", account_id, lane=lane_shown(lane), isNew=is_new
    )


def event_skipped(kind: str, account_id: str | None = None) -> None:
    _line(logging.INFO, "event_skipped", "an event has no key and is skipped", account_id, kind=kind)


def handler_started(
    lane: object, account_id: str | None, events: int, *, ready_seconds: float | None, wait_seconds: float | None
) -> None:
    _line(
        logging.INFO,
        "handler_started",
        "a handler runs",
        account_id,
        lane=lane_shown(lane),
        events=events,
        readySeconds=ready_seconds,
        waitSeconds=wait_seconds,
    )


def handler_finished(lane: object, account_id: str | None, seconds: float, reruns: int) -> None:
    shown = lane_shown(lane)
    _line(logging.INFO, "handler_finished", "a handler is done", account_id, lane=shown, seconds=seconds, reruns=reruns)


def handler_requeued(lane: object, account_id: str | None, at: object) -> None:
    message = "a handler goes to the end of the queue: events came while it ran, or more wait than one run takes"
    _line(logging.INFO, "handler_requeued", message, account_id, lane=lane_shown(lane), at=at)


def handler_skipped(lane: object, account_id: str | None) -> None:
    message = "a handler was woken, and its events are handled already"
    _line(logging.INFO, "handler_skipped", message, account_id, lane=lane_shown(lane))


def handler_failed(lane: object, account_id: str | None, error: BaseException, job: str) -> None:
    message = "a handler failed for good; `outbox jobs` has the dead letter"
    _line(logging.ERROR, "handler_failed", message, account_id, error, lane=lane_shown(lane), job=job)


def limit_throttled(name: str, seconds: float, factor: float) -> None:
    message = "a call under a shared limit got a 429: all instances pause, and go on more slowly"
    _line(logging.WARNING, "limit_throttled", message, None, limit=name, seconds=seconds, rateFactor=factor)


# --- reminders and runs


def reminder_invalid(account_id: str | None, reminder_id: str, sentence: str) -> None:
    message = "a reminder cannot fire"
    _line(logging.ERROR, "reminder_invalid", message, account_id, reminderId=reminder_id, field=place_in(sentence))


def targets_invalid(account_id: str, run_id: str, chunk: str, sentence: str) -> None:
    message = "a list of targets is left out"
    field = place_in(sentence)
    _line(logging.ERROR, "targets_invalid", message, account_id, runId=run_id, chunk=chunk, field=field)


def request_id_taken(account_id: str, run_id: str, request_id: str) -> None:
    message = "another message has the id of a run's target; the run takes the next one"
    _line(logging.WARNING, "request_id_taken", message, account_id, runId=run_id, requestId=request_id)


def opted_out(account_id: str, because: str, skipped: int) -> None:
    message = "an address gets no more messages of runs"
    _line(logging.INFO, "opted_out", message, account_id, because=because, skipped=skipped)


def run_ended(account_id: str, run_id: str, status: str) -> None:
    _line(logging.INFO, "run_ended", "a run has ended", account_id, runId=run_id, status=status)


def _masked_id(provider_message_id: str | None) -> str | None:
    """Some providers put the person's number into the id of a message."""
    return None if provider_message_id is None else masked(provider_message_id)


# --- the console


def console_action(account_id: str | None, what: str, *, is_done: bool) -> None:
    """`what` as in the log of actions, which says who did it."""
    _line(logging.INFO, "console_action", "a person acted in the console", account_id, what=what, isDone=is_done)
